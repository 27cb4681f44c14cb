//! The events of other services that crm listens to: a client accepted a quote, which the client's deal records.

use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use chassis_work::event_listener;
use proto::api::event_listener_service_server::EventListenerService;
use proto::api::{DeliverEventsRequest, DeliverEventsResponse};
use tonic::{Request, Response, Status};

use crate::deal::{AcceptedQuote, operations};
use crate::error::Error;

const QUOTE_ACCEPTED: &str = "quote.accepted";

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

/// Handles the whole batch in one transaction or refuses it. A retried event that was handled before has no effect.
async fn deliver(tx: &mut Tx<'_>, input: &DeliverEventsRequest) -> Result<DeliverEventsResponse, Error> {
    let new = event_listener::unseen(tx, input).await?;
    let accepted = event_listener::read::<AcceptedQuote>(tx, &new, QUOTE_ACCEPTED, "a quote");
    tx.valid()?;
    let quotes: Vec<&AcceptedQuote> = accepted.iter().map(|event| &event.data).collect();
    operations::accept_quotes(tx, &quotes).await?;
    Ok(DeliverEventsResponse {})
}
