//! The SQL of credentials.

use chassis_base::AccountId;
use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::Record;

pub(super) async fn insert(connection: &mut PgConnection, record: &Record) -> Result<(), sqlx::Error> {
    sqlx::query(
        "insert into credential (account_id, public_id, team, secret_hash, scopes, created_at, expires_at, tell_at)
         values ($1, $2, $3, $4, $5, $6, $7, $7)",
    )
    .bind(record.account_id)
    .bind(&record.public_id)
    .bind(&record.team)
    .bind(&record.secret_hash)
    .bind(&record.scopes)
    .bind(record.created_at)
    .bind(record.expires_at)
    .execute(connection)
    .await?;
    Ok(())
}

pub(super) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    public_id: &str,
) -> Result<Option<Record>, sqlx::Error> {
    sqlx::query_as(
        "select account_id, public_id, team, secret_hash, scopes, created_at, expires_at, last_used_at, revoked_at
         from credential where account_id = $1 and public_id = $2",
    )
    .bind(account)
    .bind(public_id)
    .fetch_optional(connection)
    .await
}

/// Every record, those of one credential next to each other.
pub(super) async fn list(connection: &mut PgConnection) -> Result<Vec<Record>, sqlx::Error> {
    sqlx::query_as(
        "select account_id, public_id, team, secret_hash, scopes, created_at, expires_at, last_used_at, revoked_at
         from credential order by created_at, public_id, account_id",
    )
    .fetch_all(connection)
    .await
}

/// Revokes a credential for all its accounts. A second revocation keeps the time of the first. Empty when it is absent.
/// Reads the whole table, which is small, so that no index is needed that does not begin with the account.
pub(super) async fn revoke(
    connection: &mut PgConnection,
    public_id: &str,
    now: DateTime<Utc>,
) -> Result<Vec<Record>, sqlx::Error> {
    sqlx::query_as(
        "update credential set revoked_at = coalesce(revoked_at, $2), tell_at = $2 where public_id = $1
         returning account_id, public_id, team, secret_hash, scopes, created_at, expires_at, last_used_at, revoked_at",
    )
    .bind(public_id)
    .bind(now)
    .fetch_all(connection)
    .await
}

/// Records when a credential was last used for an account.
pub(super) async fn record_use(
    connection: &mut PgConnection,
    record: &Record,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query("update credential set last_used_at = $3 where account_id = $1 and public_id = $2")
        .bind(record.account_id)
        .bind(&record.public_id)
        .bind(now)
        .execute(connection)
        .await?;
    Ok(())
}
