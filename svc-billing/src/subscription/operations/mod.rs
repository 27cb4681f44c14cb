//! The writes of subscriptions. Each function is one operation inside a write transaction; the client it may need has
//! been looked up before.

mod activate;
mod bill;
mod create;
mod deactivate;
mod patch;

pub(crate) use activate::{Activation, activate, activate_for_client};
pub(crate) use bill::{BillingFailure, DueSubscription, process_due, record_failure};
pub(crate) use create::create;
pub(crate) use deactivate::deactivate;
pub(crate) use patch::patch;

use chassis_data::Tx;
use chassis_data::log::snapshot::{Shown, uuids};
use proto::billing::Subscription;

use super::{Full, store};
use crate::error::Error;

pub(crate) const NOT_FOUND: Error = Error::NotFound("subscription");

/// Locks the subscription with an id; `None` when there is none.
async fn lock(tx: &mut Tx<'_>, id: &str) -> Result<Option<Full>, Error> {
    let account = tx.account();
    match chassis_base::id::parse(id) {
        Some(id) => store::lock(tx.db(), account, id).await,
        None => Ok(None),
    }
}

/// Stores a changed subscription. Earlier failures are cleared, and it is due when its plan says so: the change may
/// have removed the cause of the failures.
async fn save(tx: &mut Tx<'_>, full: &mut Full) -> Result<(), Error> {
    let (account, zone) = (tx.account(), tx.settings().timezone);
    let record = &mut full.record;
    record.touch(tx.now());
    record.failures = 0;
    record.last_error.clear();
    store::update(tx.db(), account, record, record.due_at(zone)).await?;
    tx.relist(&record.stored_listing(), &record.listing());
    audit(tx, full);
    Ok(())
}

/// Stores the subscription in the log.
fn audit(tx: &mut Tx<'_>, full: &Full) {
    tx.changed("subscription", full.record.id, &Subscription::from(full));
}

/// Shows the subscriptions with these ids.
pub(crate) async fn show(tx: &mut Tx<'_>, ids: &[String], shown: &mut Shown) -> Result<(), Error> {
    let account = tx.account();
    for id in uuids(ids) {
        if let Some(full) = store::find(tx.db(), account, id).await? {
            shown.add(id, &Subscription::from(&full));
        }
    }
    Ok(())
}
