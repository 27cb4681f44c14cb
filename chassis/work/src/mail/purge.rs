//! Deletes the content of sent mails after a month. The record that they were sent stays.

use chassis_base::Error;
use chassis_data::write::Tx;
use chrono::TimeDelta;

use crate::worker::{Due, Job, Next, Worker};

/// How long the content of a sent mail is kept. Must match `due` below.
const RETENTION: TimeDelta = TimeDelta::days(30);
/// How many mails one transaction purges.
const BATCH: i64 = 500;

pub fn worker() -> Worker {
    let live = "work.status = 'sent' and (work.message is not null or work.content is not null)";
    let due = Due::new("mail work", live, "work.done_at").later("30 days");
    Worker::new("mail-content", due, async |job: Job| {
        let purged = job.write(&(), purge).await?;
        let more = i64::try_from(purged).is_ok_and(|purged| purged >= BATCH);
        Ok(if more { Next::Now } else { Next::WhenDue })
    })
    .every(std::time::Duration::from_hours(1))
}

async fn purge(tx: &mut Tx<'_>, (): &()) -> Result<u64, Error> {
    let (account, now) = (tx.account(), tx.now());
    let purged = sqlx::query(
        "update mail set message = null, content = null where account_id = $1 and id in (
            select id from mail
            where account_id = $1 and status = 'sent' and (message is not null or content is not null)
              and done_at <= $2 limit $3)",
    )
    .bind(account)
    .bind(now - RETENTION)
    .bind(BATCH)
    .execute(tx.db())
    .await?;
    Ok(purged.rows_affected())
}
