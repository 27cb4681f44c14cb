//! `TicketMessageService`: takes requests apart and puts answers together.

use chassis::{Call, Db, Tx, id, mail};
use proto::api::ListMeta;
use proto::support::ticket_message_service_server::TicketMessageService;
use proto::support::{
    CreateTicketMessageRequest, CreateTicketMessageResponse, GetTicketMessageRequest,
    GetTicketMessageResponse, ListTicketMessagesRequest, ListTicketMessagesResponse, TicketMessage,
};
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::letter::Desk;
use super::{created, operations, store};
use crate::{Error, ticket};

pub struct Messages {
    pub db: Db,
    pub desk: Desk,
}

#[tonic::async_trait]
impl TicketMessageService for Messages {
    async fn list_ticket_messages(
        &self,
        request: Request<ListTicketMessagesRequest>,
    ) -> Result<Response<ListTicketMessagesResponse>, Status> {
        // Not `valid`: an id of an odd form is unknown, and there is nothing else to be wrong.
        let Call { context, input, .. } = Call::open(request)?;
        let (account, unknown) = (context.account_id(), || Error::NotFound("ticket"));
        let id = id::parse(&input.id).ok_or_else(unknown)?;
        let mut connection = self.db.read().await?;
        let ticket = ticket::store::find(&mut connection, account, id).await?.ok_or_else(unknown)?;
        let records = store::list(&mut connection, account, ticket.id).await?;
        let mails: Vec<Uuid> = records.iter().filter_map(|record| record.mail_id).collect();
        let statuses = mail::statuses(&mut connection, account, &mails).await?;
        connection.done();
        let data: Vec<TicketMessage> = records.into_iter().map(|record| record.shown(&statuses)).collect();
        let meta = Some(ListMeta { total: ticket.message_count });
        Ok(Response::new(ListTicketMessagesResponse { data, meta }))
    }

    async fn create_ticket_message(
        &self,
        request: Request<CreateTicketMessageRequest>,
    ) -> Result<Response<CreateTicketMessageResponse>, Status> {
        self.db.write_with(Call::open(request)?, self.desk.clone(), create).await
    }

    async fn get_ticket_message(
        &self,
        request: Request<GetTicketMessageRequest>,
    ) -> Result<Response<GetTicketMessageResponse>, Status> {
        let Call { context, input, .. } = Call::open(request)?;
        let (account, unknown) = (context.account_id(), || Error::NotFound("ticket message"));
        let ids = id::parse(&input.id).zip(id::parse(&input.message_id));
        let (ticket, id) = ids.ok_or_else(unknown)?;
        let mut connection = self.db.read().await?;
        let record = store::find(&mut connection, account, ticket, id).await?.ok_or_else(unknown)?;
        let mails: Vec<Uuid> = record.mail_id.into_iter().collect();
        let statuses = mail::statuses(&mut connection, account, &mails).await?;
        connection.done();
        Ok(Response::new(GetTicketMessageResponse { data: Some(record.shown(&statuses)) }))
    }
}

async fn create(
    tx: &mut Tx<'_>,
    with: &(CreateTicketMessageRequest, Desk),
) -> Result<CreateTicketMessageResponse, Error> {
    let record = operations::create(tx, with).await?;
    let statuses = operations::queued(&record);
    Ok(CreateTicketMessageResponse { data: Some(created(record.shown(&statuses))) })
}
