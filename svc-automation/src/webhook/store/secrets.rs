//! The SQL of the secrets that sign the account's own requests.

use chassis_base::AccountId;
use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::egress::Secret;
use crate::error::Error;
use crate::webhook::SigningSecrets;

pub(in crate::webhook) async fn find_signing(
    connection: &mut PgConnection,
    account: AccountId,
) -> Result<Option<SigningSecrets>, Error> {
    let sql =
        "select secret, old_secret, old_secret_until from automation.signing_secret where account_id = $1";
    Ok(sqlx::query_as(sql).bind(account).fetch_optional(connection).await?)
}

/// Stores a first secret unless there is one; tells whether it did.
pub(in crate::webhook) async fn insert_signing(
    connection: &mut PgConnection,
    account: AccountId,
    secret: &Secret,
) -> Result<bool, Error> {
    let sql =
        "insert into automation.signing_secret (account_id, secret) values ($1, $2) on conflict do nothing";
    let stored = sqlx::query(sql).bind(account).bind(secret.as_bytes()).execute(connection).await?;
    Ok(stored.rows_affected() > 0)
}

/// Replaces the secret. The replaced one signs too until then.
pub(in crate::webhook) async fn rotate_signing(
    connection: &mut PgConnection,
    account: AccountId,
    secret: &Secret,
    until: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "update automation.signing_secret set old_secret = secret, old_secret_until = $3, secret = $2
         where account_id = $1",
    )
    .bind(account)
    .bind(secret.as_bytes())
    .bind(until)
    .execute(connection)
    .await?;
    Ok(())
}
