//! Rows as another version might have written them.

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
