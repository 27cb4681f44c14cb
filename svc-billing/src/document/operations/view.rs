//! Recording that a visitor opened the page of a quote.

use chassis_data::Tx;
use serde_json::json;

use super::record_history;
use crate::document::{Record, events, store};
use crate::error::Error;

/// Records the visit, once a day in the account's time zone.
pub(crate) async fn view(tx: &mut Tx<'_>, record: &Record) -> Result<(), Error> {
    let (account, today) = (tx.account(), tx.today());
    if let Some(version) = store::mark_viewed(tx.db(), account, record.id, today).await? {
        let record = Record { version, ..record.clone() };
        tx.unaudited("a visit is not a change of the document; it is in the history");
        record_history(tx, record.id, "viewed", json!({}), None).await?;
        events::viewed(tx, &record);
    }
    Ok(())
}
