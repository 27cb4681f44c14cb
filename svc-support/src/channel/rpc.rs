//! `TicketChannelService`: parse, decide, write, reply.

use chassis::{Call, Db, Tx, id};
use proto::At;
use proto::api::{Fault, ListMeta};
use proto::support::ticket_channel_service_server::TicketChannelService;
use proto::support::{
    CreateTicketChannelRequest, CreateTicketChannelResponse, DeleteTicketChannelRequest,
    DeleteTicketChannelResponse, ListTicketChannelsRequest, ListTicketChannelsResponse, TicketChannel,
    UpdateTicketChannelRequest, UpdateTicketChannelResponse,
};
use tonic::{Request, Response, Status};

use super::{Record, rules, store};
use crate::Error;
use crate::address::OwnDomain;
use crate::status::rpc::wants_active;

const UNKNOWN: Error = Error::NotFound("ticket channel");
/// What the audit log calls it.
pub const AUDITED: &str = "ticket_channel";

pub struct Channels {
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
        let active = wants_active(&call.input.active, &mut call.faults);
        let (context, _) = call.valid()?;
        let account = context.account_id();
        let mut connection = self.db.read().await?;
        let records = store::list(&mut connection, account, active).await?;
        connection.done();
        let data: Vec<TicketChannel> =
            records.into_iter().map(|record| record.message(account, &self.own)).collect();
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
    (input, own): &(CreateTicketChannelRequest, OwnDomain),
) -> Result<CreateTicketChannelResponse, Error> {
    let given = input.channel.clone().unwrap_or_default();
    let values = rules::read(&given, &mut tx.faults);
    let (account, now) = (tx.account(), tx.now());
    if store::count(tx.db(), account).await? >= store::MOST {
        let detail = format!("an account can have {} channels; remove one first", store::MOST);
        tx.faults.add(&At::ROOT.name("channel"), Fault::TooMany, detail);
    }
    tx.valid()?;
    let record =
        Record { id: tx.id(), values, inbound_key: rand::random(), created_at: now, updated_at: now };
    store::insert(tx.db(), account, &record).await?;
    Ok(CreateTicketChannelResponse { data: Some(record.message(account, own)) })
}

async fn update(
    tx: &mut Tx<'_>,
    (input, own): &(UpdateTicketChannelRequest, OwnDomain),
) -> Result<UpdateTicketChannelResponse, Error> {
    id::forgive(&mut tx.faults);
    let given = input.channel.clone().unwrap_or_default();
    let values = rules::read(&given, &mut tx.faults);
    tx.valid()?;
    let (account, now) = (tx.account(), tx.now());
    let id = id::parse(&input.id).ok_or(UNKNOWN)?;
    let mut record = store::find_locked(tx.db(), account, id).await?.ok_or(UNKNOWN)?;
    if record.values != values {
        record.values = values;
        record.updated_at = now;
        store::update(tx.db(), account, &record).await?;
    }
    Ok(UpdateTicketChannelResponse { data: Some(record.message(account, own)) })
}

async fn delete(
    tx: &mut Tx<'_>,
    input: &DeleteTicketChannelRequest,
) -> Result<DeleteTicketChannelResponse, Error> {
    id::forgive(&mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let id = id::parse(&input.id).ok_or(UNKNOWN)?;
    if !store::delete(tx.db(), account, id).await? {
        return Err(UNKNOWN);
    }
    tx.removed(AUDITED, id);
    Ok(DeleteTicketChannelResponse {})
}
