//! A visitor opens the page of a quote.

use chassis_data::Tx;
use serde_json::json;

use super::log;
use crate::Error;
use crate::document::{Record, events, store};

/// Notes the visit, once a day in the account's time zone.
pub async fn view(tx: &mut Tx<'_>, record: &Record) -> Result<(), Error> {
    let (account, today) = (tx.account(), tx.today());
    if let Some(version) = store::note_view(tx.db(), account, record.id, today).await? {
        let record = Record { version, ..record.clone() };
        tx.unaudited("that somebody looked at it is no change; its history tells");
        log(tx, record.id, "viewed", json!({}), None).await?;
        events::viewed(tx, &record);
    }
    Ok(())
}
