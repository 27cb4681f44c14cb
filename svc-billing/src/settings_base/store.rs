//! The SQL of the lock on an account's settings, and of those that were removed.

use chassis_base::AccountId;
use sqlx::PgConnection;

use super::SettingsLock;
use crate::error::Error;

/// Waits for the lock. `None` when the account has no settings yet, and so nothing to lock.
pub(crate) async fn lock(
    connection: &mut PgConnection,
    account: AccountId,
) -> Result<Option<SettingsLock>, Error> {
    let sql = "select default_tax_code from billing.settings where account_id = $1 for update";
    let code: Option<String> = sqlx::query_scalar(sql).bind(account).fetch_optional(connection).await?;
    Ok(code.map(|default_tax_code| SettingsLock { default_tax_code }))
}

/// The version of the removal of the setting with this id; 0 when none was removed.
pub(crate) async fn removed_version(
    connection: &mut PgConnection,
    account: AccountId,
    kind: &str,
    id: &str,
) -> Result<i64, Error> {
    let sql = "select version from billing.removed_setting where account_id = $1 and kind = $2 and id = $3";
    let query = sqlx::query_scalar(sql).bind(account).bind(kind).bind(id);
    Ok(query.fetch_optional(connection).await?.unwrap_or_default())
}

/// Stores the version of the removal of a setting, so that one with the same id goes on counting from there.
pub(crate) async fn remember_removed(
    connection: &mut PgConnection,
    account: AccountId,
    kind: &str,
    id: &str,
    version: i64,
) -> Result<(), Error> {
    let sql = "insert into billing.removed_setting (account_id, kind, id, version) values ($1, $2, $3, $4) \
               on conflict (account_id, kind, id) do update set version = excluded.version";
    sqlx::query(sql).bind(account).bind(kind).bind(id).bind(version).execute(connection).await?;
    Ok(())
}
