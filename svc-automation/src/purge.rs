//! Forgets what is old: events and deliveries after 30 days. Runs have a copy of the event that they are about.

use std::time::Duration;

use chassis::worker::{Due, Job, Next, Worker};
use chassis::{Error, Tx};
use chrono::TimeDelta;

use crate::{event, webhook};

/// How many rows one transaction forgets.
const BATCH: i64 = 2000;
const EVERY: Duration = Duration::from_mins(10);

pub(crate) fn workers() -> [Worker; 2] {
    let due = |table, due| Due { table, live: "true", due, argument: String::new() };
    let events = due("event", "work.received_at < $2 - interval '30 days'");
    let deliveries = due("webhook_delivery", "work.created_at < $2 - interval '30 days'");
    [
        Worker::new("purge:events", events, async |job: Job| next(job.write(&(), forget_events).await?))
            .every(EVERY),
        Worker::new("purge:deliveries", deliveries, async |job: Job| {
            next(job.write(&(), forget_deliveries).await?)
        })
        .every(EVERY),
    ]
}

#[expect(clippy::unnecessary_wraps, reason = "what a job answers with")]
fn next(purged: u64) -> Result<Next, Error> {
    let more = i64::try_from(purged).is_ok_and(|purged| purged >= BATCH);
    Ok(if more { Next::Now } else { Next::After(TimeDelta::hours(1)) })
}

async fn forget_events(tx: &mut Tx<'_>, (): &()) -> Result<u64, crate::Error> {
    let (account, now) = (tx.account(), tx.now());
    event::store::purge(tx.db(), account, now, BATCH).await
}

async fn forget_deliveries(tx: &mut Tx<'_>, (): &()) -> Result<u64, crate::Error> {
    let (account, now) = (tx.account(), tx.now());
    webhook::purge(tx.db(), account, now, BATCH).await
}
