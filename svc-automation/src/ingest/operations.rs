//! Stores events with everything that follows from them, in one transaction.

use chassis_data::Tx;
use proto::At;
use proto::api::Fault;

use crate::error::Error;
use crate::event::rules::{canonical, is_event_name, or_empty_object};
use crate::event::{self, Event};
use crate::run::{self, StartedRun};
use crate::webhook;

/// Stores the events that are new, queues them for webhook endpoints and starts the flows that they trigger, in the order
/// of the events. Returns the runs.
///
/// A crash leaves all of this or nothing of it; the sender delivers again, and what was stored is recognised by its position or, if it
/// was refused before, by its id.
pub(crate) async fn ingest(tx: &mut Tx<'_>, events: &[Event]) -> Result<Vec<StartedRun>, Error> {
    let new = event::operations::insert_new(tx, events).await?;
    if new.is_empty() {
        return Ok(Vec::new());
    }
    for event in &new {
        let lag = (tx.now() - event.occurred_at).as_seconds_f64().max(0.0);
        metrics::histogram!("event_lag_seconds").record(lag);
    }
    webhook::operations::queue(tx, &new).await?;
    run::operations::start_triggered(tx, &new).await
}

/// What an integration fires.
pub(super) struct Trigger<'a> {
    pub event: &'a str,
    /// JSON text of an object; may be empty.
    pub data: &'a str,
    pub entity_type: String,
    pub entity_id: Option<i64>,
}

/// Stores the event of an integration and starts the flows that it triggers.
pub(super) async fn fire(tx: &mut Tx<'_>, trigger: Trigger<'_>) -> Result<Vec<StartedRun>, Error> {
    let at = At::ROOT.name("trigger");
    let at = at.name("event");
    if trigger.event.is_empty() {
        tx.faults.add(&at, Fault::Required, "event is required");
    }
    if !is_event_name(trigger.event) {
        let detail = "event must have only the characters a-z 0-9 _ . : -";
        tx.faults.add(&at, Fault::BadFormat, detail);
    }
    tx.valid()?;
    let event = Event {
        id: tx.id(),
        kind: canonical(trigger.event).to_owned(),
        entity_type: trigger.entity_type,
        entity_id: trigger.entity_id.map(|id| id.to_string()).unwrap_or_default(),
        sequence: None,
        data: or_empty_object(trigger.data),
        occurred_at: tx.now(),
        depth: tx.depth(),
        actor: tx.caller().map(|caller| caller.identity.actor.clone()).unwrap_or_default(),
    };
    ingest(tx, &[event]).await
}
