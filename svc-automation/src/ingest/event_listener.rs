//! `EventListenerService`: receives the events of other services.

use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use chassis_work::event_listener::{self, Unseen};
use proto::At;
use proto::api::event_listener_service_server::EventListenerService;
use proto::api::{DeliverEventsRequest, DeliverEventsResponse};
use tonic::{Request, Response, Status};

use super::{operations, rules};
use crate::error::Error;

pub(crate) struct EventListener {
    pub db: Db,
}

#[tonic::async_trait]
impl EventListenerService for EventListener {
    async fn deliver_events(
        &self,
        request: Request<DeliverEventsRequest>,
    ) -> Result<Response<DeliverEventsResponse>, Status> {
        self.db.write(Call::open(request)?, deliver).await
    }
}

/// All events of the batch or none.
async fn deliver(tx: &mut Tx<'_>, input: &DeliverEventsRequest) -> Result<DeliverEventsResponse, Error> {
    let account = tx.account();
    let at = At::ROOT.name("events");
    let mut events = Vec::with_capacity(input.events.len());
    for Unseen { index, event } in event_listener::unseen(tx, input).await? {
        events.extend(rules::parse(event, account, &at.index(index), &mut tx.faults));
    }
    tx.valid()?;
    operations::ingest(tx, &events).await?;
    Ok(DeliverEventsResponse {})
}
