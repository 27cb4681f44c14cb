//! The events of other services that support listens to: who a client is was forgotten, and its tickets forget it too.

use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use chassis_work::event_listener;
use proto::api::event_listener_service_server::EventListenerService;
use proto::api::{DeliverEventsRequest, DeliverEventsResponse};
use serde::Deserialize;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use crate::error::Error;
use crate::{message, ticket};

const CLIENT_ANONYMIZED: &str = "client.anonymized";
/// How many tickets are read at a time.
const PAGE: usize = 100;

pub(crate) struct EventListener {
    pub db: Db,
}

/// The data of the event: what the client is called now.
#[derive(Deserialize)]
struct AnonymizedClient {
    id: Uuid,
    #[serde(default)]
    company_name: String,
    #[serde(default)]
    lastname: String,
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
    let clients = event_listener::read::<AnonymizedClient>(tx, &new, CLIENT_ANONYMIZED, "a client");
    tx.valid()?;
    tx.unaudited("a client without tickets changes nothing");
    for client in clients {
        forget(tx, &client.data).await?;
    }
    Ok(DeliverEventsResponse {})
}

async fn forget(tx: &mut Tx<'_>, client: &AnonymizedClient) -> Result<(), Error> {
    let name = format!("{}{}", client.company_name, client.lastname);
    let (account, mut after) = (tx.account(), Uuid::nil());
    loop {
        let tickets = ticket::store::list_of_client_locked(tx.db(), account, client.id, after, PAGE).await?;
        let is_full = tickets.len() == PAGE;
        after = tickets.last().map_or(after, |ticket| ticket.id);
        for record in tickets {
            message::operations::forget_client(tx, record.id, &name).await?;
            ticket::operations::forget_client(tx, record, &name).await?;
        }
        if !is_full {
            return Ok(tx.forget_mentions(client.id).await?);
        }
    }
}
