//! What can be done with a subscription. Each function is one operation inside a write transaction; the client it may
//! need has been looked up before.

mod activate;
mod create;
mod deactivate;
mod patch;

pub use activate::{Activation, activate, activate_draft};
pub use create::create;
pub use deactivate::deactivate;
pub use patch::patch;

use chassis_data::Tx;

use super::{Full, Record, answer, store};
use crate::Error;
use crate::document::rules::amounts::Row;

const UNKNOWN: Error = Error::NotFound("subscription");

/// The subscription of an id, locked; `None` when there is none.
async fn lock(tx: &mut Tx<'_>, id: &str) -> Result<Option<Full>, Error> {
    let account = tx.account();
    match chassis_base::id::parse(id) {
        Some(id) => store::lock(tx.db(), account, id).await,
        None => Ok(None),
    }
}

/// Stores a changed subscription, to be looked at when its plan says so. What stood in its way is forgotten: the change
/// may have helped.
async fn save(tx: &mut Tx<'_>, record: &mut Record) -> Result<(), Error> {
    let (account, zone) = (tx.account(), tx.settings().timezone);
    record.updated_at = tx.now();
    record.failures = 0;
    record.last_error.clear();
    store::update(tx.db(), account, record, record.due_at(zone)).await?;
    audit(tx, record);
    Ok(())
}

/// Keeps a subscription in the audit log as it is now.
pub fn audit(tx: &mut Tx<'_>, record: &Record) {
    tx.changed("subscription", record.id, &answer::item(record));
}

/// The same for its lines, which rarely change.
fn audit_lines(tx: &mut Tx<'_>, record: &Record, lines: &[Row]) {
    tx.changed("subscription_lines", record.id, &answer::only_lines(record, lines));
}
