//! Writes of events.

use chassis_data::Tx;

use super::{Event, store};
use crate::error::Error;

/// Stores the events that are not stored yet and returns these, each once and in the order given: deliveries of other
/// services are repeated, and a batch may contain the same event twice.
pub(crate) async fn insert_new(tx: &mut Tx<'_>, events: &[Event]) -> Result<Vec<Event>, Error> {
    let (account, now) = (tx.account(), tx.now());
    let new = store::insert_new(tx.db(), account, events, now).await?;
    let mut inserted: Vec<Event> = Vec::with_capacity(new.len());
    for event in events {
        if new.contains(&event.id) && !inserted.iter().any(|other| other.id == event.id) {
            inserted.push(event.clone());
        }
    }
    Ok(inserted)
}

/// Deletes old events, at most `limit`; returns how many.
pub(crate) async fn purge(tx: &mut Tx<'_>, limit: i64) -> Result<u64, Error> {
    let (account, now) = (tx.account(), tx.now());
    store::purge(tx.db(), account, now, limit).await
}
