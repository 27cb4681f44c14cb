//! Deletes old entries. The role of the running service can only insert and read entries, so this is a command that is
//! run from time to time with the rights of the schema's owner.

use chassis_base::{AccountId, Error};
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use crate::connect::connect;

/// How many entries one transaction deletes.
const BATCH: i64 = 1000;

/// Deletes the entries that are older than `days` at `now`, account by account, and returns how many. With 0 days
/// everything is kept.
pub async fn purge(url: &str, schema: &str, days: u16, now: DateTime<Utc>) -> Result<u64, Error> {
    let mut purged = 0;
    if days == 0 {
        return Ok(purged);
    }
    let oldest = first_id(now - TimeDelta::days(days.into()));
    let mut connection = connect(url, schema).await?;
    let mut account = next_account(&mut connection, AccountId::trust(Uuid::nil())).await?;
    while let Some(current) = account {
        purged += purge_account(&mut connection, current, oldest).await?;
        account = next_account(&mut connection, current).await?;
    }
    connection.close().await?;
    Ok(purged)
}

/// The next account that has entries, found by the primary key, so that the cost does not grow with the entries.
async fn next_account(connection: &mut PgConnection, after: AccountId) -> Result<Option<AccountId>, Error> {
    let sql = "select account_id from audit where account_id > $1 order by account_id limit 1";
    Ok(sqlx::query_scalar(sql).bind(after).fetch_optional(connection).await?)
}

/// Selects by the time in the id, because the primary key is in that order. The newest of a record's old entries stays,
/// because it is the state before the record's next change, unless that entry is the removal of the record.
async fn purge_account(
    connection: &mut PgConnection,
    account: AccountId,
    oldest: Uuid,
) -> Result<u64, Error> {
    let mut all = 0;
    loop {
        let purged = sqlx::query(
            "delete from audit where account_id = $1 and id in (
                select id from audit entry
                where account_id = $1 and id < $2 and (image is null or exists (
                    select from audit later
                    where later.account_id = $1 and later.entity_id = entry.entity_id
                        and later.entity_type = entry.entity_type and later.id > entry.id and later.id < $2))
                order by id limit $3)",
        )
        .bind(account)
        .bind(oldest)
        .bind(BATCH)
        .execute(&mut *connection)
        .await?
        .rows_affected();
        all += purged;
        if i64::try_from(purged).is_ok_and(|purged| purged < BATCH) {
            return Ok(all);
        }
    }
}

/// The smallest id that an entry of this millisecond can have.
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
        let id = chassis_base::Clock::held_at(now).id();
        assert!(first_id(now) <= id && id < first_id(now + TimeDelta::milliseconds(1)));
        assert_eq!(first_id(DateTime::<Utc>::MIN_UTC), Uuid::nil());
    }
}
