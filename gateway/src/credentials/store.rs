//! The SQL of credentials.

use chassis::AccountId;
use chrono::{DateTime, Utc};
use sqlx::PgConnection;

/// A credential as it is stored for one of its accounts.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct CredentialRow {
    pub account_id: AccountId,
    pub public_id: String,
    pub team: String,
    pub secret_hash: Vec<u8>,
    pub scopes: Vec<String>,
    pub created_at: DateTime<Utc>,
    pub expires_at: Option<DateTime<Utc>>,
    pub last_used_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
}

pub async fn insert(connection: &mut PgConnection, row: &CredentialRow) -> Result<(), sqlx::Error> {
    sqlx::query(
        "insert into credential (account_id, public_id, team, secret_hash, scopes, created_at, expires_at, tell_at)
         values ($1, $2, $3, $4, $5, $6, $7, $7)",
    )
    .bind(row.account_id)
    .bind(&row.public_id)
    .bind(&row.team)
    .bind(&row.secret_hash)
    .bind(&row.scopes)
    .bind(row.created_at)
    .bind(row.expires_at)
    .execute(connection)
    .await?;
    Ok(())
}

pub async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    public_id: &str,
) -> Result<Option<CredentialRow>, sqlx::Error> {
    sqlx::query_as(
        "select account_id, public_id, team, secret_hash, scopes, created_at, expires_at, last_used_at, revoked_at
         from credential where account_id = $1 and public_id = $2",
    )
    .bind(account)
    .bind(public_id)
    .fetch_optional(connection)
    .await
}

/// Every row, those of a credential next to each other.
pub async fn list(connection: &mut PgConnection) -> Result<Vec<CredentialRow>, sqlx::Error> {
    sqlx::query_as(
        "select account_id, public_id, team, secret_hash, scopes, created_at, expires_at, last_used_at, revoked_at
         from credential order by created_at, public_id, account_id",
    )
    .fetch_all(connection)
    .await
}

/// Revokes a credential for all its accounts; one that is revoked already keeps its time. Nothing when there is none.
/// Reads the whole table, which is small, so that no index is needed that begins with something else than an account.
pub async fn revoke(
    connection: &mut PgConnection,
    public_id: &str,
    now: DateTime<Utc>,
) -> Result<Vec<CredentialRow>, sqlx::Error> {
    sqlx::query_as(
        "update credential set revoked_at = coalesce(revoked_at, $2), tell_at = $2 where public_id = $1
         returning account_id, public_id, team, secret_hash, scopes, created_at, expires_at, last_used_at, revoked_at",
    )
    .bind(public_id)
    .bind(now)
    .fetch_all(connection)
    .await
}

/// Writes down when a credential was last used for an account.
pub async fn note_use(
    connection: &mut PgConnection,
    row: &CredentialRow,
    now: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query("update credential set last_used_at = $3 where account_id = $1 and public_id = $2")
        .bind(row.account_id)
        .bind(&row.public_id)
        .bind(now)
        .execute(connection)
        .await?;
    Ok(())
}
