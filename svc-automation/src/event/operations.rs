//! Takes events in: each once, with everything that follows from it in the same transaction.

use chassis_data::Tx;

use super::{Event, store};
use crate::run::start::{self, Started};
use crate::{Error, webhook};

/// Keeps those that are new, starts the runs of the flows that wait for them and queues what endpoints are told, in the
/// order of the events. Returns the runs.
pub(crate) async fn take(tx: &mut Tx<'_>, events: &[Event]) -> Result<Vec<Started>, Error> {
    let (account, now) = (tx.account(), tx.now());
    let new = store::insert_new(tx.db(), account, events, now).await?;
    // A batch may have the same event twice.
    let mut fresh: Vec<Event> = Vec::with_capacity(new.len());
    for event in events {
        if new.contains(&event.id) && !fresh.iter().any(|known| known.id == event.id) {
            fresh.push(event.clone());
        }
    }
    if fresh.is_empty() {
        return Ok(Vec::new());
    }
    for event in &fresh {
        let lag = (now - event.occurred_at).as_seconds_f64().max(0.0);
        metrics::histogram!("event_lag_seconds").record(lag);
    }
    webhook::operations::queue(tx, &fresh).await?;
    start::matching(tx, &fresh).await
}
