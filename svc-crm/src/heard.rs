//! What crm hears of other services: a client accepted a quote, and the client's deal tells so.

use chassis::{Call, Db, Tx};
use proto::At;
use proto::api::event_listener_service_server::EventListenerService;
use proto::api::{DeliverEventsRequest, DeliverEventsResponse, Event, Fault};
use serde::Deserialize;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use crate::Error;
use crate::deal::{events, store};

const QUOTE_ACCEPTED: &str = "quote.accepted";

pub struct Heard {
    pub db: Db,
}

/// What the event tells of a quote.
#[derive(Debug, Deserialize)]
pub struct Quote {
    pub id: Uuid,
    #[serde(default)]
    pub number: String,
    pub client_id: Option<Uuid>,
    /// Passed on as it came.
    #[serde(default)]
    pub total_incl_vat: serde_json::Value,
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

/// The whole batch or nothing of it.
async fn deliver(tx: &mut Tx<'_>, input: &DeliverEventsRequest) -> Result<DeliverEventsResponse, Error> {
    let account = tx.account();
    let place = At::ROOT.name("events");
    let mut accepted = Vec::new();
    for (index, event) in input.events.iter().enumerate() {
        let at = place.index(index);
        if event.account_id.parse() != Ok(account.uuid()) {
            let detail = "account_id must be the account that the call is made for";
            tx.faults.add(&at.name("account_id"), Fault::NotAllowed, detail);
        }
        match quote(event) {
            Some(Ok(quote)) => accepted.push(quote),
            Some(Err(error)) => {
                let detail = format!("data must tell of a quote: {error}");
                tx.faults.add(&at.name("data"), Fault::BadFormat, detail);
            }
            None => {}
        }
    }
    tx.valid()?;
    for quote in &accepted {
        accept(tx, quote).await?;
    }
    Ok(DeliverEventsResponse {})
}

/// The quote that an event tells of; `None` for events of another kind.
fn quote(event: &Event) -> Option<Result<Quote, serde_json::Error>> {
    (event.r#type == QUOTE_ACCEPTED).then(|| serde_json::from_str(&event.data))
}

/// Which deal the quote was for is only known when the client has a single open one.
async fn accept(tx: &mut Tx<'_>, quote: &Quote) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let Some(client) = quote.client_id else { return Ok(()) };
    if !store::note_accepted_quote(tx.db(), account, quote.id, now).await? {
        return Ok(());
    }
    let mut open = store::find_two_open_locked(tx.db(), account, client).await?;
    if let (Some(mut deal), None) = (open.pop(), open.pop()) {
        deal.version += 1;
        deal.updated_at = now;
        store::update(tx.db(), account, &deal, Some(quote.id), true).await?;
        events::quote_accepted(tx, &deal, quote);
    }
    Ok(())
}
