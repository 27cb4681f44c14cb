//! `TicketChannelService`: parse, call, answer.

use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use proto::api::ListMeta;
use proto::support::ticket_channel_service_server::TicketChannelService;
use proto::support::{
    CreateTicketChannelRequest, CreateTicketChannelResponse, DeleteTicketChannelRequest,
    DeleteTicketChannelResponse, ListTicketChannelsRequest, ListTicketChannelsResponse, TicketChannel,
    UpdateTicketChannelRequest, UpdateTicketChannelResponse,
};
use tonic::{Request, Response, Status};

use super::{operations, store};
use crate::active_filter;
use crate::address::OwnDomain;
use crate::error::Error;

pub(crate) struct Channels {
    pub db: Db,
    pub own: OwnDomain,
}

#[tonic::async_trait]
impl TicketChannelService for Channels {
    async fn list_ticket_channels(
        &self,
        request: Request<ListTicketChannelsRequest>,
    ) -> Result<Response<ListTicketChannelsResponse>, Status> {
        let mut call = Call::open(request)?;
        let active = active_filter::parse(&call.input.active, &mut call.faults);
        let (context, _) = call.valid()?;
        let account = context.account_id();
        let records = self.db.read(async |connection| store::list(connection, account, active).await).await?;
        let data: Vec<TicketChannel> =
            records.into_iter().map(|record| record.into_proto(account, &self.own)).collect();
        let total = i64::try_from(data.len()).unwrap_or(i64::MAX);
        Ok(Response::new(ListTicketChannelsResponse { data, meta: Some(ListMeta { total }) }))
    }

    async fn create_ticket_channel(
        &self,
        request: Request<CreateTicketChannelRequest>,
    ) -> Result<Response<CreateTicketChannelResponse>, Status> {
        self.db.write_with(Call::open(request)?, self.own.clone(), create).await
    }

    async fn update_ticket_channel(
        &self,
        request: Request<UpdateTicketChannelRequest>,
    ) -> Result<Response<UpdateTicketChannelResponse>, Status> {
        self.db.write_with(Call::open(request)?, self.own.clone(), update).await
    }

    async fn delete_ticket_channel(
        &self,
        request: Request<DeleteTicketChannelRequest>,
    ) -> Result<Response<DeleteTicketChannelResponse>, Status> {
        self.db.write(Call::open(request)?, delete).await
    }
}

async fn create(
    tx: &mut Tx<'_>,
    input: &CreateTicketChannelRequest,
    own: &OwnDomain,
) -> Result<CreateTicketChannelResponse, Error> {
    let given = input.channel.clone().unwrap_or_default();
    let record = operations::create(tx, &given).await?;
    Ok(CreateTicketChannelResponse { data: Some(record.into_proto(tx.account(), own)) })
}

async fn update(
    tx: &mut Tx<'_>,
    input: &UpdateTicketChannelRequest,
    own: &OwnDomain,
) -> Result<UpdateTicketChannelResponse, Error> {
    let given = input.channel.clone().unwrap_or_default();
    let record = operations::update(tx, &input.id, &given).await?;
    Ok(UpdateTicketChannelResponse { data: Some(record.into_proto(tx.account(), own)) })
}

async fn delete(
    tx: &mut Tx<'_>,
    input: &DeleteTicketChannelRequest,
) -> Result<DeleteTicketChannelResponse, Error> {
    operations::delete(tx, &input.id).await?;
    Ok(DeleteTicketChannelResponse {})
}
