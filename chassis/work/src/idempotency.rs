//! Deletes idempotency keys whose window has passed.

use chassis_base::Error;
use chassis_data::Tx;
use chassis_data::idempotency::{BATCH, purge};
use chrono::TimeDelta;

use crate::worker::{Due, Job, Next, Worker};

/// Purges accounts with old keys, each at most once an hour.
pub fn worker() -> Worker {
    // The same time as `WINDOW`.
    let due = Due::new("idempotency work", "true", "work.created_at").later("24 hours");
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
