//! Recording that a visitor opened the page of a quote.

use chassis_data::Tx;
use serde_json::json;

use super::{log_changed, record_history};
use crate::document::store::Viewed;
use crate::document::{Links, Record, events, store};
use crate::error::Error;

/// Records the visit, once a day in the account's time zone.
pub(crate) async fn view(tx: &mut Tx<'_>, links: &Links, record: &Record) -> Result<(), Error> {
    let (account, now, today) = (tx.account(), tx.now(), tx.today());
    let Some(viewed) = store::mark_viewed(tx.db(), account, record.id, today, now).await? else {
        return Ok(());
    };
    let Viewed { version, time_events } = viewed;
    record_history(tx, record.id, "viewed", json!({}), None).await?;
    events::viewed(tx, &Record { version, time_events, ..record.clone() });
    log_changed(tx, links, &[record.id]).await
}
