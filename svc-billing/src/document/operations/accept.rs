//! Accepting a quote.

use chassis_data::Tx;
use proto::billing::Document;
use serde_json::json;

use super::family::Family;
use super::finalize::make_final;
use super::{OperationContext, record_history};
use crate::document::rules::search;
use crate::document::rules::status::Status;
use crate::document::{Kind, events, store};
use crate::error::Error;

/// Accepts a quote. Doing so again changes nothing, unless its status was changed since.
pub(crate) async fn accept(tx: &mut Tx<'_>, context: &OperationContext, id: &str) -> Result<Document, Error> {
    chassis_base::id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let kind = Kind::Quote;
    let mut family = Family::lock(tx, &context.links, kind, id).await?.ok_or(Error::NotFound(kind.name()))?;
    let quote = family.target();
    if quote.accepted_at.is_none() || quote.status != Status::Accepted {
        let from = family.target().status.clone();
        if !family.target().is_final {
            make_final(tx, &mut family, context.client.as_ref()).await?;
        }
        let (account, now) = (tx.account(), tx.now());
        let record = family.raise(family.target, now);
        record.accepted_at = Some(now);
        record.status = Status::Accepted;
        let search_text = search::with_number(record);
        store::update_content(tx.db(), account, record, &search_text).await?;
        record_history(tx, record.id, "accepted", json!({}), None).await?;
        events::accepted(tx, record);
        events::status_changed(tx, record, &from).await?;
    }
    family.log_target(tx).await
}
