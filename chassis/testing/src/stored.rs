//! Rows that tests look at, or write as another version might have.

#![expect(clippy::expect_used, reason = "a test that cannot change its database has to stop")]

use chassis_base::AccountId;
use sqlx::AssertSqlSafe;

use crate::database::TestDatabase;

/// Drops the constraint of a column that refuses other texts, as a newer version may do, and stores one in all rows of the
/// account. `table` has its schema in front.
pub async fn store_text(database: &TestDatabase, account: AccountId, table: &str, column: &str, text: &str) {
    let name = table.split_once('.').expect("schema.table").1;
    let mut connection = database.connect().await;
    let drop = format!("alter table {table} drop constraint if exists {name}_{column}_known");
    sqlx::query(AssertSqlSafe(drop)).execute(&mut connection).await.expect("no constraint");
    let update = format!("update {table} set {column} = $2 where account_id = $1");
    sqlx::query(AssertSqlSafe(update))
        .bind(account)
        .bind(text)
        .execute(&mut connection)
        .await
        .expect("a stored text");
}

/// The number of steps that the events of a service have still to go: entries without a position, listeners that are
/// behind, and events that a listener has refused and will get again.
pub async fn undelivered(database: &TestDatabase, schema: &str) -> i64 {
    let sql = format!(
        "select (select count(*) from {schema}.pending)
            + (select count(*) from {schema}.reader where target > position)
            + (select count(*) from {schema}.reader_exception where dead_at is null)"
    );
    let count = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&mut database.connect().await).await;
    count.expect("a count")
}
