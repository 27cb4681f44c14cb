//! Forgets what is old: events and deliveries after 30 days, runs 90 days after their end. Runs have a copy of the event
//! that they are about.

use std::time::Duration;

use chassis_base::Error;
use chassis_data::Tx;
use chassis_work::Worker;
use chassis_work::worker::{Due, Job, Next};
use chrono::TimeDelta;

use crate::{event, run, webhook};

/// How many rows one transaction forgets.
const BATCH: i64 = 500;
const EVERY: Duration = Duration::from_mins(10);

pub(crate) fn workers() -> [Worker; 3] {
    let events = Due::new("event work", "true", "work.received_at").later("30 days");
    let deliveries = Due::new("webhook_delivery work", "true", "work.created_at").later("30 days");
    let runs = Due::new("run work", "work.finished_at is not null", "work.finished_at").later("90 days");
    [
        Worker::new("purge:events", events, async |job: Job| next(job.write(&(), forget_events).await?))
            .every(EVERY),
        Worker::new("purge:deliveries", deliveries, async |job: Job| {
            next(job.write(&(), forget_deliveries).await?)
        })
        .every(EVERY),
        Worker::new("purge:runs", runs, async |job: Job| next(job.write(&(), forget_runs).await?))
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

async fn forget_runs(tx: &mut Tx<'_>, (): &()) -> Result<u64, crate::Error> {
    let (account, now) = (tx.account(), tx.now());
    let purged = run::store::purge(tx.db(), account, now, BATCH).await?;
    for created_at in &purged {
        tx.count(run::LIST, *created_at, -1);
    }
    Ok(u64::try_from(purged.len()).unwrap_or(u64::MAX))
}
