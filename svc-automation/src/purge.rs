//! Deletes old rows: events and deliveries after 30 days, runs 90 days after their end. A run keeps a copy of its event,
//! so events can go first. The workers are together in one file because they differ only in what they delete.

use std::time::Duration;

use chassis_base::Error;
use chassis_data::Tx;
use chassis_work::Worker;
use chassis_work::worker::{Due, Job, Next};
use chrono::TimeDelta;

use crate::{event, run, webhook};

/// How many rows one transaction deletes.
const BATCH: i64 = 500;
const INTERVAL: Duration = Duration::from_hours(1);

pub(crate) fn workers() -> [Worker; 3] {
    let events = Due::new("event work", "true", "work.received_at").later("30 days");
    let deliveries = Due::new("webhook_delivery work", "true", "work.created_at").later("30 days");
    let runs = Due::new("run work", "work.finished_at is not null", "work.finished_at").later("90 days");
    [
        Worker::new("purge:events", events, async |job: Job| next(job.write(&(), purge_events).await?))
            .every(INTERVAL),
        Worker::new("purge:deliveries", deliveries, async |job: Job| {
            next(job.write(&(), purge_deliveries).await?)
        })
        .every(INTERVAL),
        Worker::new("purge:runs", runs, async |job: Job| next(job.write(&(), purge_runs).await?))
            .every(INTERVAL),
    ]
}

/// A full batch means that there may be more to delete.
#[expect(clippy::unnecessary_wraps, reason = "the result type of a job")]
fn next(purged: u64) -> Result<Next, Error> {
    let may_have_more = i64::try_from(purged).is_ok_and(|purged| purged >= BATCH);
    Ok(if may_have_more { Next::Now } else { Next::After(TimeDelta::hours(1)) })
}

async fn purge_events(tx: &mut Tx<'_>, (): &()) -> Result<u64, crate::error::Error> {
    event::operations::purge(tx, BATCH).await
}

async fn purge_deliveries(tx: &mut Tx<'_>, (): &()) -> Result<u64, crate::error::Error> {
    webhook::operations::purge(tx, BATCH).await
}

async fn purge_runs(tx: &mut Tx<'_>, (): &()) -> Result<u64, crate::error::Error> {
    run::operations::purge(tx, BATCH).await
}
