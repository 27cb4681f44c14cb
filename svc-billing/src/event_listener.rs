//! The events of other services that billing listens to: a client changed, and the names in its drafts and subscriptions
//! follow; or who a client is was forgotten, and to whom its documents were sent is forgotten too.

use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use chassis_work::event_listener;
use proto::api::event_listener_service_server::EventListenerService;
use proto::api::{DeliverEventsRequest, DeliverEventsResponse};
use serde::Deserialize;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use crate::clients::Client;
use crate::document::Links;
use crate::error::Error;
use crate::{document, subscription};

const CLIENT_CHANGED: &str = "customer.updated";
const CLIENT_ANONYMIZED: &str = "client.anonymized";

pub(crate) struct EventListener {
    pub db: Db,
    /// The links of drafts, which change with their client.
    pub links: Links,
}

/// The data of the event.
#[derive(Deserialize)]
struct ChangedClient {
    id: Uuid,
    #[serde(default)]
    company_name: String,
    #[serde(default)]
    firstname: String,
    #[serde(default)]
    lastname: String,
}

#[derive(Deserialize)]
struct AnonymizedClient {
    id: Uuid,
}

#[tonic::async_trait]
impl EventListenerService for EventListener {
    async fn deliver_events(
        &self,
        request: Request<DeliverEventsRequest>,
    ) -> Result<Response<DeliverEventsResponse>, Status> {
        self.db.write_with(Call::open(request)?, self.links.clone(), deliver).await
    }
}

/// Applies the whole batch or nothing of it. A retried event that comes twice changes nothing: the names are the same.
async fn deliver(
    tx: &mut Tx<'_>,
    input: &DeliverEventsRequest,
    links: &Links,
) -> Result<DeliverEventsResponse, Error> {
    let account = tx.account();
    let new = event_listener::unseen(tx, input).await?;
    let events = event_listener::read::<ChangedClient>(tx, &new, CLIENT_CHANGED, "a client");
    let anonymized = event_listener::read::<AnonymizedClient>(tx, &new, CLIENT_ANONYMIZED, "a client");
    tx.valid()?;
    tx.unaudited("subscriptions are only found by the names of their client and do not show them");
    for client in latest(events.into_iter().map(|event| event.data.into())) {
        document::operations::follow_client(tx, links, &client).await?;
        subscription::follow_client(tx.db(), account, &client).await?;
    }
    for client in anonymized {
        document::operations::forget_client(tx, links, client.data.id).await?;
    }
    Ok(DeliverEventsResponse {})
}

/// The last state of each client, so that a draft changes once for all events of a batch.
fn latest(changed: impl Iterator<Item = Client>) -> Vec<Client> {
    let mut clients: Vec<Client> = Vec::new();
    for client in changed {
        clients.retain(|earlier| earlier.id != client.id);
        clients.push(client);
    }
    clients
}

impl From<ChangedClient> for Client {
    fn from(ChangedClient { id, company_name, firstname, lastname }: ChangedClient) -> Self {
        Self { id, company_name, firstname, lastname }
    }
}
