//! Forgetting old entries. The role that serves can add entries and read them, nothing else; so this is a command, run
//! now and then with the rights of the schema's owner.

use chassis_base::{AccountId, Error};
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use crate::connect::connect;

/// How many entries one transaction forgets.
const BATCH: i64 = 1000;

/// Forgets what is older than so many days at `now`, account by account; says how much that was. With 0 days everything
/// is kept.
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

/// The first account with entries after this one; found in the key, however many entries there are.
async fn next_account(connection: &mut PgConnection, after: AccountId) -> Result<Option<AccountId>, Error> {
    let sql = "select account_id from audit where account_id > $1 order by account_id limit 1";
    Ok(sqlx::query_scalar(sql).bind(after).fetch_optional(connection).await?)
}

/// By the time in the id, which the key is ordered by. The newest entry of each record stays, for it is what the next
/// change will have changed; unless the record is gone.
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
        let id = chassis_base::Clock::held_at(now).id();
        assert!(first_id(now) <= id && id < first_id(now + TimeDelta::milliseconds(1)));
        assert_eq!(first_id(DateTime::<Utc>::MIN_UTC), Uuid::nil());
    }
}
