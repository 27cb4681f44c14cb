//! The SQL of the lock on an account's settings.

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
