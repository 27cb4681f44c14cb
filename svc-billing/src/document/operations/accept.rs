//! A client says yes to a quote.

use chassis_data::Tx;
use proto::billing::Document;
use serde_json::json;

use super::family::Family;
use super::finalize::make_final;
use super::{Known, answer, audit, log};
use crate::Error;
use crate::document::rules::search;
use crate::document::rules::standing::ACCEPTED;
use crate::document::{Kind, events, store};

/// Accepts a quote, once: a second time changes nothing, unless its status was changed since.
pub async fn accept(tx: &mut Tx<'_>, known: &Known, id: &str) -> Result<Document, Error> {
    chassis_base::id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let kind = Kind::Quote;
    let mut family = Family::lock(tx, kind, id).await?.ok_or(Error::NotFound(kind.name()))?;
    let quote = family.target();
    if quote.accepted_at.is_none() || quote.payment_status != ACCEPTED {
        let from = family.target().payment_status.clone();
        if !family.target().is_final {
            make_final(tx, &mut family, known.client.as_ref()).await?;
        }
        let (account, now) = (tx.account(), tx.now());
        let record = family.target_mut();
        record.version += 1;
        record.updated_at = now;
        record.accepted_at = Some(now);
        ACCEPTED.clone_into(&mut record.payment_status);
        let search_text = search::with_number(record);
        store::update_content(tx.db(), account, record, &search_text).await?;
        log(tx, record.id, "accepted", json!({}), None).await?;
        audit(tx, record);
        events::accepted(tx, record);
        events::status_changed(tx, record, &from).await?;
    }
    answer(tx, known, family.target().id).await
}
