//! Forgetting old entries.

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use crate::error::Error;
use crate::worker::{Due, Job, Next, Worker};
use crate::write::Tx;

/// How many entries one transaction forgets.
const BATCH: i64 = 1000;

/// Forgets what is older than so many days, a few times a day; `None` when everything is kept.
pub fn worker(days: u16) -> Option<Worker> {
    if days == 0 {
        return None;
    }
    let due = Due { table: "audit", live: "true", due: "true", argument: String::new() };
    let worker = Worker::new("audit", due, move |job: Job| async move {
        let purged = job.write(&TimeDelta::days(days.into()), purge).await?;
        let more = i64::try_from(purged).is_ok_and(|purged| purged >= BATCH);
        Ok(if more { Next::Now } else { Next::After(TimeDelta::hours(6)) })
    });
    Some(worker.every(std::time::Duration::from_mins(10)))
}

/// By the time in the id, which the key is ordered by. The newest entry of each record stays, for it is what the next
/// change will have changed; unless the record is gone.
async fn purge(tx: &mut Tx<'_>, kept: &TimeDelta) -> Result<u64, Error> {
    let (account, oldest) = (tx.account(), first_id(tx.now() - *kept));
    let purged = sqlx::query(
        "delete from audit where account_id = $1 and id in (
            select id from audit entry
            where account_id = $1 and id < $2 and (image is null or exists (
                select from audit later
                where later.account_id = entry.account_id and later.entity_id = entry.entity_id
                    and later.entity_type = entry.entity_type and later.id > entry.id and later.id < $2))
            order by id limit $3)",
    )
    .bind(account)
    .bind(oldest)
    .bind(BATCH)
    .execute(tx.db())
    .await?;
    Ok(purged.rows_affected())
}

/// The least id that an entry of this moment can have.
pub(super) fn first_id(time: DateTime<Utc>) -> Uuid {
    let millis = u64::try_from(time.timestamp_millis()).unwrap_or_default();
    Uuid::from_u128(u128::from(millis) << 80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_a_moment_come_after_the_first_of_it_and_before_the_next() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::milliseconds(1_794_740_400_123);
        let id = crate::clock::Clock::held_at(now).id();
        assert!(first_id(now) <= id && id < first_id(now + TimeDelta::milliseconds(1)));
        assert_eq!(first_id(DateTime::<Utc>::MIN_UTC), Uuid::nil());
    }
}
