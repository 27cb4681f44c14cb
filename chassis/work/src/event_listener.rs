//! Receives the events that another service delivers.

use chassis_base::Error;
use chassis_data::write::Tx;
use proto::At;
use proto::api::{DeliverEventsRequest, Event, Fault};
use serde::de::DeserializeOwned;

/// An event that this service has not taken yet.
#[derive(Clone, Copy, Debug)]
pub struct Unseen<'e> {
    /// The place in the batch.
    pub index: usize,
    pub event: &'e Event,
}

/// An event with its parsed data.
#[derive(Debug)]
pub struct Received<'e, T> {
    /// The place in the batch.
    pub index: usize,
    pub event: &'e Event,
    pub data: T,
}

/// The events that this service has not taken yet, in order. The last position of the sender's log is stored with what
/// the transaction does, so that a batch that is delivered twice, or late by a process that no longer should, has no
/// effect. Not so an event that was refused before ([`Event::retried`]): there the listener must recognise what it has
/// done. One round trip.
pub async fn unseen<'e>(tx: &mut Tx<'_>, input: &'e DeliverEventsRequest) -> Result<Vec<Unseen<'e>>, Error> {
    let is_ordered = |event: &&Event| event.position > 0 && !event.retried;
    let last = input.events.iter().filter(is_ordered).map(|event| event.position).max();
    let seen = match last {
        Some(last) => take(tx, last).await?,
        None => 0,
    };
    let events = input.events.iter().enumerate().map(|(index, event)| Unseen { index, event });
    Ok(events.filter(|new| !is_ordered(&new.event) || new.event.position > seen).collect())
}

/// Moves the position of the sender's log to `last` unless it is beyond that; returns what it was.
async fn take(tx: &mut Tx<'_>, last: i64) -> Result<i64, Error> {
    let account = tx.account();
    // The sender is who signed the call.
    let source = tx.caller().map(|caller| caller.identity.actor.clone()).unwrap_or_default();
    let before: i64 = sqlx::query_scalar(
        "insert into received (account_id, source, position, before) values ($1, $2, $3, 0)
         on conflict (account_id, source) do update
            set before = received.position, position = greatest(received.position, excluded.position)
         returning before",
    )
    .bind(account)
    .bind(source)
    .bind(last)
    .fetch_one(tx.db())
    .await?;
    Ok(before)
}

/// The events of one type, in order. An event of another account, or one of this type with invalid data, adds a fault,
/// so that the whole batch is refused. `what` names the data in the fault.
pub fn read<'e, T: DeserializeOwned>(
    tx: &mut Tx<'_>,
    events: &[Unseen<'e>],
    kind: &str,
    what: &str,
) -> Vec<Received<'e, T>> {
    let (account, place) = (tx.account(), At::ROOT.name("events"));
    let mut received = Vec::new();
    for Unseen { index, event } in events.iter().copied() {
        let at = place.index(index);
        if event.account_id.parse() != Ok(account.uuid()) {
            let detail = "account_id must be the account that the call is made for";
            tx.faults.add(&at.name("account_id"), Fault::NotAllowed, detail);
        }
        if event.r#type != kind {
            continue;
        }
        match serde_json::from_str(&event.data) {
            Ok(data) => received.push(Received { index, event, data }),
            Err(error) => {
                let detail = format!("data must tell of {what}: {error}");
                tx.faults.add(&at.name("data"), Fault::BadFormat, detail);
            }
        }
    }
    received
}
