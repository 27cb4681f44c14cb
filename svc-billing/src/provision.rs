//! What every account starts with: settings, the tax rates of its country, payment terms and an identity. Calls the
//! resources; none of them calls it.

use chassis_data::Tx;

use crate::error::Error;
use crate::settings_base::{self, SettingsLock};
use crate::{identity, payment_term, settings, tax_rate};

/// Creates the defaults of an account that has none. They are created once: what was changed or removed since stays so.
pub(crate) async fn defaults(tx: &mut Tx<'_>) -> Result<(), Error> {
    // The row of the settings decides: the transaction that inserts it also inserts the rest.
    if settings::operations::insert_defaults(tx).await? {
        tax_rate::operations::insert_defaults(tx).await?;
        payment_term::operations::insert_defaults(tx).await?;
        identity::operations::insert_default(tx).await
    } else {
        identity::operations::follow_account_name(tx).await
    }
}

/// Locks the settings of an account before one of them is changed. An account that was never provisioned gets its
/// defaults first.
pub(crate) async fn lock_settings(tx: &mut Tx<'_>) -> Result<SettingsLock, Error> {
    let account = tx.account();
    if let Some(lock) = settings_base::lock(tx.db(), account).await? {
        return Ok(lock);
    }
    defaults(tx).await?;
    let lock = settings_base::lock(tx.db(), account).await?;
    lock.ok_or_else(|| chassis_base::Error::Internal("settings are missing after provisioning".into()).into())
}
