//! `TicketService`: parse, call, answer.

use chassis_base::id;
use chassis_base::paging::Page;
use chassis_base::update_mask::UpdateMask;
use chassis_data::list::Selection;
use chassis_data::{Db, LazyTx, Tx};
use chassis_rpc::Call;
use proto::support::ticket_service_server::TicketService;
use proto::support::{
    CreateTicketRequest, CreateTicketResponse, GetTicketRequest, GetTicketResponse, ListTicketsRequest,
    ListTicketsResponse, TicketItem, TicketPriority, TicketSource, UpdateTicketRequest, UpdateTicketResponse,
};
use tonic::{Request, Response, Status};

use super::Source;
use super::operations::{self, NOT_FOUND};
use super::store::{self, Filter};
use crate::clients::{Clients, Lookup};
use crate::error::Error;

pub(crate) struct Tickets {
    pub db: Db,
    pub clients: Clients,
}

#[tonic::async_trait]
impl TicketService for Tickets {
    async fn list_tickets(
        &self,
        request: Request<ListTicketsRequest>,
    ) -> Result<Response<ListTicketsResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let page = Page::new(input.page, input.per_page);
        let filter = Filter {
            selection: Selection::new(context.account(), &input),
            status: Some(input.status.as_str()).filter(|status| !status.is_empty()),
            priority: Some(input.priority()).filter(|priority| *priority != TicketPriority::Unspecified),
            client: id::filter(&input.client_id),
            channel: id::filter(&input.channel_id),
            source: source(input.source()),
            search: input.search.trim(),
        };
        let (records, meta) = self
            .db
            .read(async |connection| store::list(connection, context.account_id(), &filter, page).await)
            .await?;
        let data = records.into_iter().map(TicketItem::from).collect();
        Ok(Response::new(ListTicketsResponse { data, meta: Some(meta) }))
    }

    async fn create_ticket(
        &self,
        request: Request<CreateTicketRequest>,
    ) -> Result<Response<CreateTicketResponse>, Status> {
        let call = Call::open(request)?;
        let given = call.input.ticket.as_ref().map_or("", |ticket| &ticket.client_id);
        let client = self.clients.look_up(&call.context, given).await?;
        self.db.write_with(call, client, create).await
    }

    async fn get_ticket(
        &self,
        request: Request<GetTicketRequest>,
    ) -> Result<Response<GetTicketResponse>, Status> {
        // `valid` is not called: a malformed id is answered as not found, and no other field can be wrong.
        let Call { context, input, .. } = Call::open(request)?;
        let id = id::parse(&input.id).ok_or(NOT_FOUND)?;
        let found =
            self.db.read(async |connection| store::find(connection, context.account_id(), id).await).await?;
        Ok(Response::new(GetTicketResponse { data: Some(found.ok_or(NOT_FOUND)?.into()) }))
    }

    async fn update_ticket(
        &self,
        request: Request<UpdateTicketRequest>,
    ) -> Result<Response<UpdateTicketResponse>, Status> {
        let call = Call::open(request)?;
        let in_mask = UpdateMask::from(call.input.update_mask.as_ref()).has("client_id");
        let given = call.input.ticket.as_ref().filter(|_| in_mask).map_or("", |ticket| &ticket.client_id);
        let client = self.clients.look_up(&call.context, given).await?;
        self.db.write_lazily_with(call, client, update).await
    }
}

fn source(given: TicketSource) -> Option<Source> {
    match given {
        TicketSource::Unspecified => None,
        TicketSource::Api => Some(Source::Api),
        TicketSource::Email => Some(Source::Email),
    }
}

async fn create(
    tx: &mut Tx<'_>,
    input: &CreateTicketRequest,
    client: &Lookup,
) -> Result<CreateTicketResponse, Error> {
    let given = input.ticket.clone().unwrap_or_default();
    Ok(CreateTicketResponse { data: Some(operations::create(tx, &given, client).await?.into()) })
}

async fn update(
    tx: &mut LazyTx<'_>,
    input: &UpdateTicketRequest,
    client: &Lookup,
) -> Result<UpdateTicketResponse, Error> {
    let given = input.ticket.clone().unwrap_or_default();
    let mask = UpdateMask::from(input.update_mask.as_ref());
    let record = operations::update(tx, &input.id, &given, mask, client).await?;
    Ok(UpdateTicketResponse { data: Some(record.into()) })
}
