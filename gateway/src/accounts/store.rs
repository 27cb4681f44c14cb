//! The SQL of accounts.

use sqlx::PgConnection;
use uuid::Uuid;

use super::Record;

pub(crate) async fn insert(connection: &mut PgConnection, record: &Record) -> Result<(), sqlx::Error> {
    sqlx::query(
        "insert into account (account_id, name, country, timezone, currency, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $6)",
    )
    .bind(record.account_id)
    .bind(&record.name)
    .bind(&record.country)
    .bind(&record.timezone)
    .bind(&record.currency)
    .bind(record.created_at)
    .execute(connection)
    .await?;
    Ok(())
}

/// All accounts, by creation. There are few: an operator creates each.
pub(crate) async fn list(connection: &mut PgConnection) -> Result<Vec<Record>, sqlx::Error> {
    sqlx::query_as(
        "select account_id, name, country, timezone, currency, created_at
         from account order by created_at, account_id",
    )
    .fetch_all(connection)
    .await
}

/// Finds an account by id, or by name regardless of case. At most one account matches: `rules.rs` refuses a name that
/// looks like an id.
pub(crate) async fn find(
    connection: &mut PgConnection,
    id_or_name: &str,
) -> Result<Option<Record>, sqlx::Error> {
    sqlx::query_as(
        "select account_id, name, country, timezone, currency, created_at
         from account where account_id = $1 or lower(name) = lower($2)",
    )
    .bind(Uuid::parse_str(id_or_name).unwrap_or_default())
    .bind(id_or_name.trim())
    .fetch_optional(connection)
    .await
}
