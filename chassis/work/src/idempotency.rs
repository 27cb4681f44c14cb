//! Deletes idempotency keys whose window has passed.

use chassis_base::Error;
use chassis_data::Tx;
use chassis_data::idempotency::{BATCH, purge};
use chrono::TimeDelta;

use crate::worker::{Due, IMMEDIATELY, Job, Next, Worker};

/// Purges every account that uses keys, once an hour.
pub fn worker() -> Worker {
    let due = Due::new("idempotency work", "true", IMMEDIATELY);
    Worker::new("idempotency", due, async |job: Job| {
        let purged = job.write(&(), purge_now).await?;
        let more = i64::try_from(purged).is_ok_and(|purged| purged >= BATCH);
        Ok(if more { Next::Now } else { Next::After(TimeDelta::hours(1)) })
    })
    .every(std::time::Duration::from_hours(1))
}

async fn purge_now(tx: &mut Tx<'_>, (): &()) -> Result<u64, Error> {
    let (account, now) = (tx.account(), tx.now());
    purge(tx.db(), account, now).await
}
