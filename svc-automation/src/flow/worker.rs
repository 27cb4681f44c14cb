//! Starts scheduled flows when their time has come.

use chassis_data::Tx;
use chassis_work::Worker;
use chassis_work::worker::{Due, Job, Next};

use super::operations;
use crate::error::Error;

/// Flows of one account that one transaction starts.
const BATCH: i64 = 50;

pub(crate) fn worker() -> Worker {
    let due = Due::new("flow work", "work.next_start_at is not null", "work.next_start_at");
    Worker::new("schedules", due, async |job: Job| {
        let started = job.write(&(), start_due).await?;
        Ok(if started < BATCH { Next::WhenDue } else { Next::Now })
    })
}

async fn start_due(tx: &mut Tx<'_>, (): &()) -> Result<i64, Error> {
    operations::start_scheduled(tx, BATCH).await
}
