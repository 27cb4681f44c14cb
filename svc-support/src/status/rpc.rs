//! `TicketStatusService`: parse, decide, write, reply.

use chassis::{Call, Db, Tx, id};
use proto::api::{Fault, ListMeta};
use proto::support::ticket_status_service_server::TicketStatusService;
use proto::support::{
    CreateTicketStatusRequest, CreateTicketStatusResponse, DeleteTicketStatusRequest,
    DeleteTicketStatusResponse, ListTicketStatusesRequest, ListTicketStatusesResponse, TicketStatus,
    UpdateTicketStatusRequest, UpdateTicketStatusResponse,
};
use proto::{At, Faults};
use tonic::{Request, Response, Status};

use super::{BUILT_IN, Record, store};
use crate::Error;

const UNKNOWN: Error = Error::NotFound("ticket status");
/// What the audit log calls it.
pub const AUDITED: &str = "ticket_status";

pub struct Statuses {
    pub db: Db,
}

#[tonic::async_trait]
impl TicketStatusService for Statuses {
    async fn list_ticket_statuses(
        &self,
        request: Request<ListTicketStatusesRequest>,
    ) -> Result<Response<ListTicketStatusesResponse>, Status> {
        let mut call = Call::open(request)?;
        let active = wants_active(&call.input.active, &mut call.faults);
        let (context, _) = call.valid()?;
        let mut connection = self.db.read().await?;
        let records = store::list(&mut connection, context.account_id(), active).await?;
        connection.done();
        let data: Vec<TicketStatus> = records.into_iter().map(TicketStatus::from).collect();
        let total = i64::try_from(data.len()).unwrap_or(i64::MAX);
        Ok(Response::new(ListTicketStatusesResponse { data, meta: Some(ListMeta { total }) }))
    }

    async fn create_ticket_status(
        &self,
        request: Request<CreateTicketStatusRequest>,
    ) -> Result<Response<CreateTicketStatusResponse>, Status> {
        self.db.write(Call::open(request)?, create).await
    }

    async fn update_ticket_status(
        &self,
        request: Request<UpdateTicketStatusRequest>,
    ) -> Result<Response<UpdateTicketStatusResponse>, Status> {
        self.db.write(Call::open(request)?, update).await
    }

    async fn delete_ticket_status(
        &self,
        request: Request<DeleteTicketStatusRequest>,
    ) -> Result<Response<DeleteTicketStatusResponse>, Status> {
        self.db.write(Call::open(request)?, delete).await
    }
}

/// What the filter `active` asks for.
pub fn wants_active(text: &str, faults: &mut Faults) -> bool {
    if !matches!(text, "" | "0" | "1") {
        faults.add(&At::ROOT.name("active"), Fault::NotAllowed, "active must be 1 or 0");
    }
    text != "0"
}

async fn create(
    tx: &mut Tx<'_>,
    input: &CreateTicketStatusRequest,
) -> Result<CreateTicketStatusResponse, Error> {
    let (account, now) = (tx.account(), tx.now());
    if store::count(tx.db(), account).await? >= store::MOST {
        let detail = format!("an account can have {} statuses; remove one first", store::MOST);
        tx.faults.add(&At::ROOT.name("name"), Fault::TooMany, detail);
    }
    tx.valid()?;
    let record = Record {
        id: tx.id(),
        name: input.name.clone(),
        active: input.active.unwrap_or(true),
        position: input.order,
    };
    store::insert(tx.db(), account, &record, now).await?;
    Ok(CreateTicketStatusResponse { data: Some(record.into()) })
}

async fn update(
    tx: &mut Tx<'_>,
    input: &UpdateTicketStatusRequest,
) -> Result<UpdateTicketStatusResponse, Error> {
    id::forgive(&mut tx.faults);
    tx.valid()?;
    let (account, now) = (tx.account(), tx.now());
    let id = id::parse(&input.id).ok_or(UNKNOWN)?;
    let record = store::update(tx.db(), account, id, (input.active, input.order), now).await?;
    Ok(UpdateTicketStatusResponse { data: Some(record.ok_or(UNKNOWN)?.into()) })
}

async fn delete(
    tx: &mut Tx<'_>,
    input: &DeleteTicketStatusRequest,
) -> Result<DeleteTicketStatusResponse, Error> {
    id::forgive(&mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let id = id::parse(&input.id).ok_or(UNKNOWN)?;
    let (name, used) = store::find_use(tx.db(), account, id).await?.ok_or(UNKNOWN)?;
    if used || BUILT_IN.contains(&name.as_str()) {
        return Err(Error::StatusInUse);
    }
    store::delete(tx.db(), account, id).await?;
    tx.removed(AUDITED, id);
    Ok(DeleteTicketStatusResponse {})
}
