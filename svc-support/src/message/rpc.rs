//! `TicketMessageService`: parse, call, answer.

use chassis_base::id;
use chassis_data::{Db, LazyTx};
use chassis_rpc::Call;
use chassis_work::mail::{self, AccountFiles};
use proto::At;
use proto::api::ListMeta;
use proto::support::ticket_message_service_server::TicketMessageService;
use proto::support::{
    CreateTicketMessageRequest, CreateTicketMessageResponse, GetTicketMessageRequest,
    GetTicketMessageResponse, ListTicketMessagesRequest, ListTicketMessagesResponse, TicketMessage,
};
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::mailer::Mailer;
use super::operations::NewMessage;
use super::{operations, store};
use crate::error::Error;
use crate::ticket;

pub(crate) struct Messages {
    pub db: Db,
    pub mailer: Mailer,
    pub files: AccountFiles,
}

#[tonic::async_trait]
impl TicketMessageService for Messages {
    async fn list_ticket_messages(
        &self,
        request: Request<ListTicketMessagesRequest>,
    ) -> Result<Response<ListTicketMessagesResponse>, Status> {
        // `valid` is not called: a malformed id is answered as not found, and no other field can be wrong.
        let Call { context, input, .. } = Call::open(request)?;
        let account = context.account_id();
        let not_found = || Error::NotFound("ticket");
        let id = id::parse(&input.id).ok_or_else(not_found)?;
        let (ticket, records, statuses) = self
            .db
            .read(async |connection| {
                let ticket = ticket::store::find(connection, account, id).await?.ok_or_else(not_found)?;
                let records = store::list(connection, account, ticket.id).await?;
                let mails: Vec<Uuid> = records.iter().filter_map(|record| record.mail_id).collect();
                let statuses = mail::statuses(connection, account, &mails).await?;
                Ok::<_, Error>((ticket, records, statuses))
            })
            .await?;
        let data: Vec<TicketMessage> =
            records.into_iter().map(|record| record.into_proto(&statuses)).collect();
        let meta = Some(ListMeta { total: ticket.message_count });
        Ok(Response::new(ListTicketMessagesResponse { data, meta }))
    }

    async fn create_ticket_message(
        &self,
        request: Request<CreateTicketMessageRequest>,
    ) -> Result<Response<CreateTicketMessageResponse>, Status> {
        let mut call = Call::open(request)?;
        let named = call.input.message.as_ref().map_or(&[][..], |message| &message.attachments);
        let (root, faults) = (At::ROOT, &mut call.faults);
        let at = root.name("message");
        let files = self.files.attach(&call.context, named, &at.name("attachments"), faults).await?;
        let new = NewMessage { mailer: self.mailer.clone(), files };
        self.db.write_lazily_with(call, new, create).await
    }

    async fn get_ticket_message(
        &self,
        request: Request<GetTicketMessageRequest>,
    ) -> Result<Response<GetTicketMessageResponse>, Status> {
        let Call { context, input, .. } = Call::open(request)?;
        let account = context.account_id();
        let not_found = || Error::NotFound("ticket message");
        let ids = id::parse(&input.id).zip(id::parse(&input.message_id));
        let (ticket, id) = ids.ok_or_else(not_found)?;
        let (record, statuses) = self
            .db
            .read(async |connection| {
                let record = store::find(connection, account, ticket, id).await?.ok_or_else(not_found)?;
                let mails: Vec<Uuid> = record.mail_id.into_iter().collect();
                let statuses = mail::statuses(connection, account, &mails).await?;
                Ok::<_, Error>((record, statuses))
            })
            .await?;
        Ok(Response::new(GetTicketMessageResponse { data: Some(record.into_proto(&statuses)) }))
    }
}

async fn create(
    tx: &mut LazyTx<'_>,
    input: &CreateTicketMessageRequest,
    new: &NewMessage,
) -> Result<CreateTicketMessageResponse, Error> {
    let record = operations::create(tx, input, new).await?;
    Ok(CreateTicketMessageResponse { data: Some(record.into()) })
}
