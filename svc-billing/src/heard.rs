//! What billing hears of other services: a client changed, and its drafts and subscriptions follow.

use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use chassis_work::event_listener;
use proto::api::event_listener_service_server::EventListenerService;
use proto::api::{DeliverEventsRequest, DeliverEventsResponse};
use serde::Deserialize;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use crate::document::{Client, store};
use crate::{Error, subscription};

const CLIENT_CHANGED: &str = "customer.updated";

pub struct Heard {
    pub db: Db,
}

/// What the event tells of a client.
#[derive(Deserialize)]
struct Changed {
    id: Uuid,
    #[serde(default)]
    company_name: String,
    #[serde(default)]
    firstname: String,
    #[serde(default)]
    lastname: String,
}

#[tonic::async_trait]
impl EventListenerService for Heard {
    async fn deliver_events(
        &self,
        request: Request<DeliverEventsRequest>,
    ) -> Result<Response<DeliverEventsResponse>, Status> {
        self.db.write(Call::open(request)?, deliver).await
    }
}

/// The whole batch or nothing of it. To hear of a change twice changes nothing: the names are the same.
async fn deliver(tx: &mut Tx<'_>, input: &DeliverEventsRequest) -> Result<DeliverEventsResponse, Error> {
    let (account, now) = (tx.account(), tx.now());
    let changed = event_listener::read::<Changed>(tx, input, CLIENT_CHANGED, "a client");
    tx.valid()?;
    tx.unaudited(
        "drafts and subscriptions show the names of their client, whose change is kept where it was made",
    );
    for told in changed {
        let client = Client::from(told.data);
        store::follow_client(tx.db(), account, &client, now).await?;
        subscription::follow_client(tx.db(), account, &client).await?;
    }
    Ok(DeliverEventsResponse {})
}

impl From<Changed> for Client {
    fn from(Changed { id, company_name, firstname, lastname }: Changed) -> Self {
        Self { id, company_name, firstname, lastname }
    }
}
