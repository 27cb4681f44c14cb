//! Recording how far the delivery of a document's mail has come, which its history shows.

use chassis_data::Tx;
use chassis_work::mail::Status;
use uuid::Uuid;

use super::log_changed;
use crate::document::{Links, store};
use crate::error::Error;

/// Records an attempt at the delivery of a mail, which may not be a document's at all. An attempt that leaves the state of
/// the mail as it was changes nothing.
pub(crate) async fn record_delivery(
    tx: &mut Tx<'_>,
    links: &Links,
    mail: Uuid,
    status: Status,
    error: &str,
) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let Some(entry) = store::mark_delivery(tx.db(), account, mail, status, error).await? else {
        return Ok(());
    };
    if store::raise_if_shown(tx.db(), account, &entry, now).await? {
        log_changed(tx, links, &[entry.document_id]).await?;
    }
    Ok(())
}
