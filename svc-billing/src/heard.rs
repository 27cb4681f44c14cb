//! What billing hears of other services: a client changed, and its drafts and subscriptions follow.

use chassis::{Call, Db, Tx};
use proto::At;
use proto::api::event_listener_service_server::EventListenerService;
use proto::api::{DeliverEventsRequest, DeliverEventsResponse, Event, Fault};
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
    let place = At::ROOT.name("events");
    let mut changed = Vec::new();
    for (index, event) in input.events.iter().enumerate() {
        let at = place.index(index);
        if event.account_id.parse() != Ok(account.uuid()) {
            let detail = "account_id must be the account that the call is made for";
            tx.faults.add(&at.name("account_id"), Fault::NotAllowed, detail);
        }
        match client(event) {
            Some(Ok(client)) => changed.push(client),
            Some(Err(error)) => {
                let detail = format!("data must tell of a client: {error}");
                tx.faults.add(&at.name("data"), Fault::BadFormat, detail);
            }
            None => {}
        }
    }
    tx.valid()?;
    for client in &changed {
        store::follow_client(tx.db(), account, client, now).await?;
        subscription::follow_client(tx.db(), account, client).await?;
    }
    Ok(DeliverEventsResponse {})
}

/// The client that an event tells of; `None` for events of another kind.
fn client(event: &Event) -> Option<Result<Client, serde_json::Error>> {
    let parsed = (event.r#type == CLIENT_CHANGED).then(|| serde_json::from_str::<Changed>(&event.data))?;
    Some(parsed.map(|Changed { id, company_name, firstname, lastname }| Client {
        id,
        company_name,
        firstname,
        lastname,
    }))
}
