//! `TicketStatusService`: parse, call, answer.

use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use proto::api::ListMeta;
use proto::support::ticket_status_service_server::TicketStatusService;
use proto::support::{
    CreateTicketStatusRequest, CreateTicketStatusResponse, DeleteTicketStatusRequest,
    DeleteTicketStatusResponse, ListTicketStatusesRequest, ListTicketStatusesResponse, TicketStatus,
    UpdateTicketStatusRequest, UpdateTicketStatusResponse,
};
use tonic::{Request, Response, Status};

use super::{operations, store};
use crate::active_filter;
use crate::error::Error;

pub(crate) struct Statuses {
    pub db: Db,
}

#[tonic::async_trait]
impl TicketStatusService for Statuses {
    async fn list_ticket_statuses(
        &self,
        request: Request<ListTicketStatusesRequest>,
    ) -> Result<Response<ListTicketStatusesResponse>, Status> {
        let mut call = Call::open(request)?;
        let active = active_filter::parse(&call.input.active, &mut call.faults);
        let (context, _) = call.valid()?;
        let records = self
            .db
            .read(async |connection| store::list(connection, context.account_id(), active).await)
            .await?;
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

async fn create(
    tx: &mut Tx<'_>,
    input: &CreateTicketStatusRequest,
) -> Result<CreateTicketStatusResponse, Error> {
    let record = operations::create(tx, input).await?;
    Ok(CreateTicketStatusResponse { data: Some(record.into()) })
}

async fn update(
    tx: &mut Tx<'_>,
    input: &UpdateTicketStatusRequest,
) -> Result<UpdateTicketStatusResponse, Error> {
    let record = operations::update(tx, input).await?;
    Ok(UpdateTicketStatusResponse { data: Some(record.into()) })
}

async fn delete(
    tx: &mut Tx<'_>,
    input: &DeleteTicketStatusRequest,
) -> Result<DeleteTicketStatusResponse, Error> {
    operations::delete(tx, &input.id).await?;
    Ok(DeleteTicketStatusResponse {})
}
