//! The events of other services that billing listens to: a client changed, and the names in its drafts and subscriptions
//! follow.

use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use chassis_work::event_listener;
use proto::api::event_listener_service_server::EventListenerService;
use proto::api::{DeliverEventsRequest, DeliverEventsResponse};
use serde::Deserialize;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use crate::clients::Client;
use crate::error::Error;
use crate::{document, subscription};

const CLIENT_CHANGED: &str = "customer.updated";

pub(crate) struct EventListener {
    pub db: Db,
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

#[tonic::async_trait]
impl EventListenerService for EventListener {
    async fn deliver_events(
        &self,
        request: Request<DeliverEventsRequest>,
    ) -> Result<Response<DeliverEventsResponse>, Status> {
        self.db.write(Call::open(request)?, deliver).await
    }
}

/// Applies the whole batch or nothing of it. A retried event that comes twice changes nothing: the names are the same.
async fn deliver(tx: &mut Tx<'_>, input: &DeliverEventsRequest) -> Result<DeliverEventsResponse, Error> {
    let (account, now) = (tx.account(), tx.now());
    let new = event_listener::unseen(tx, input).await?;
    let events = event_listener::read::<ChangedClient>(tx, &new, CLIENT_CHANGED, "a client");
    tx.valid()?;
    tx.unaudited("only copies of the client's names change; the change itself is audited by its own service");
    for event in events {
        let client = Client::from(event.data);
        document::store::follow_client(tx.db(), account, &client, now).await?;
        subscription::follow_client(tx.db(), account, &client).await?;
    }
    Ok(DeliverEventsResponse {})
}

impl From<ChangedClient> for Client {
    fn from(ChangedClient { id, company_name, firstname, lastname }: ChangedClient) -> Self {
        Self { id, company_name, firstname, lastname }
    }
}
