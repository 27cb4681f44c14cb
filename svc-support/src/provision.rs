//! What every account starts with: the built-in statuses, and a channel.

use chassis_data::Tx;

use crate::address::OwnDomain;
use crate::error::Error;
use crate::{channel, status};

/// Creates the defaults of an account that has none. They are created once: later changes and removals stay.
pub(crate) async fn defaults(tx: &mut Tx<'_>, own: &OwnDomain) -> Result<(), Error> {
    let account = tx.account();
    // The built-in statuses cannot be removed, so an account without a status has not been provisioned.
    if status::store::count(tx.db(), account).await? > 0 {
        return Ok(());
    }
    status::operations::create_defaults(tx).await?;
    channel::operations::create_default(tx, own).await
}
