//! Numbers without duplicates, from counter rows.

use chassis_base::{AccountId, Error};
use sqlx::PgConnection;

/// Takes the next number of a counter, which starts at 1. The counter stays locked until the transaction ends, which keeps it
/// free of gaps. Take a number as late as possible: other transactions that need the same counter wait from then on.
pub async fn next(connection: &mut PgConnection, account: AccountId, counter: &str) -> Result<i64, Error> {
    let value = sqlx::query_scalar(
        "insert into counter (account_id, name, value) values ($1, $2, 1)
         on conflict (account_id, name) do update set value = counter.value + 1
         returning value",
    )
    .bind(account)
    .bind(counter)
    .fetch_one(connection)
    .await?;
    Ok(value)
}

/// The last number that was taken from a counter.
pub(crate) async fn last(
    connection: &mut PgConnection,
    account: AccountId,
    counter: &str,
) -> Result<i64, Error> {
    let sql = "select value from counter where account_id = $1 and name = $2";
    let last: Option<i64> =
        sqlx::query_scalar(sql).bind(account).bind(counter).fetch_optional(connection).await?;
    Ok(last.unwrap_or_default())
}

/// Takes so many numbers and returns the last of them, in a transaction of its own. A transaction that uses one of them and
/// fails leaves a gap.
///
/// The commit does not wait for the disk: a record with one of the numbers is committed later, and its commit reaches the
/// disk after this one.
pub(crate) async fn advance(
    connection: &mut PgConnection,
    account: AccountId,
    counter: &str,
    by: i64,
) -> Result<i64, Error> {
    let value = sqlx::query_scalar(
        "insert into counter (account_id, name, value)
         select $1, $2, $3 where set_config('synchronous_commit', 'off', true) is not null
         on conflict (account_id, name) do update set value = counter.value + excluded.value
         returning value",
    )
    .bind(account)
    .bind(counter)
    .bind(by)
    .fetch_one(connection)
    .await?;
    Ok(value)
}
