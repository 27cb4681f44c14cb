//! Numbers without gaps and without duplicates, from a counter row that stays locked until the transaction ends. Take a
//! number as late as possible: other transactions that need the same counter wait from then on.

use chassis_base::{AccountId, Error};
use sqlx::PgConnection;

/// Takes the next number of a counter, which starts at 1.
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
