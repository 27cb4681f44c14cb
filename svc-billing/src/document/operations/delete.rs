//! Deleting a draft.

use chassis_data::Tx;
use proto::billing::Document;

use super::OperationContext;
use super::family::Family;
use crate::document::{Kind, events, store};
use crate::error::Error;

/// Deletes a draft and returns it as it was. The invoice that it credited no longer shows it.
pub(crate) async fn delete(tx: &mut Tx<'_>, context: &OperationContext, id: &str) -> Result<Document, Error> {
    let kind = context.kind;
    chassis_base::id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let links = &context.links;
    let mut family = Family::lock(tx, links, kind, id).await?.ok_or(Error::NotFound(kind.name()))?;
    let (account, record) = (tx.account(), family.target().clone());
    if record.is_final {
        return Err(Error::NotADraft);
    }
    if let Some(credit) = family.records.iter().find(|other| other.credits == Some(record.id)) {
        return Err(Error::HasCredits { credit: credit.id });
    }
    if kind == Kind::Invoice && store::has_payments(tx.db(), account, record.id).await? {
        return Err(Error::HasPayments);
    }
    let deleted = family.log_target(tx).await?;
    store::delete(tx.db(), account, &record).await?;
    tx.unlist(&record.listing());
    tx.removed(kind.name(), record.id);
    events::deleted(tx, &record);
    if record.is_credit() {
        family.touch(tx, 0).await?;
        family.log(tx, 0).await?;
    }
    Ok(deleted)
}
