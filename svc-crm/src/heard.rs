//! What crm hears of other services: a client accepted a quote, and the client's deal tells so.

use chassis::{Call, Db, Tx, heard};
use proto::api::event_listener_service_server::EventListenerService;
use proto::api::{DeliverEventsRequest, DeliverEventsResponse};
use serde::Deserialize;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use crate::Error;
use crate::deal::{events, operations, store};

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
    let accepted = heard::read::<Quote>(tx, input, QUOTE_ACCEPTED, "a quote");
    tx.valid()?;
    for told in &accepted {
        accept(tx, &told.data).await?;
    }
    Ok(DeliverEventsResponse {})
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
        operations::audited(tx, deal);
    }
    Ok(())
}
