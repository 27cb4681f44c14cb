//! Recording how far the delivery of a document's mail has come, which its history shows.

use chassis_data::Tx;
use chassis_work::mail::Attempted;

use super::log_changed;
use crate::document::{Links, attachment, store};
use crate::error::Error;

/// Records an attempt at the delivery of a mail, which may not be a document's at all. An attempt that leaves the state of
/// the mail as it was changes nothing.
pub(crate) async fn record_delivery(
    tx: &mut Tx<'_>,
    links: &Links,
    attempted: &Attempted<'_>,
) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let Some(entry) = store::mark_delivery(tx.db(), account, attempted).await? else {
        return Ok(());
    };
    if !attempted.left_out.is_empty() {
        let data = attachment::without(&entry.data, attempted.left_out);
        store::set_history_data(tx.db(), account, &entry, &data).await?;
    }
    if store::raise_if_shown(tx.db(), account, &entry, now).await? {
        log_changed(tx, links, &[entry.document_id]).await?;
    }
    Ok(())
}
