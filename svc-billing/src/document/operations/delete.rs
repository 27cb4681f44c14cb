//! Drafts can be thrown away.

use chassis_data::Tx;
use proto::billing::Document;

use super::family::Family;
use super::{Known, answer};
use crate::document::{Kind, events, store};
use crate::{Error, payment};

/// Removes a draft; answers with what it was.
pub async fn delete(tx: &mut Tx<'_>, known: &Known, id: &str) -> Result<Document, Error> {
    let kind = known.kind;
    chassis_base::id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let family = Family::lock(tx, kind, id).await?.ok_or(Error::NotFound(kind.name()))?;
    let (account, record) = (tx.account(), family.target());
    if record.is_final {
        return Err(Error::NotADraft);
    }
    if let Some(credit) = family.records.iter().find(|other| other.credits == Some(record.id)) {
        return Err(Error::HasCredits { credit: credit.id });
    }
    if kind == Kind::Invoice && payment::store::exists(tx.db(), account, record.id).await? {
        return Err(Error::HasPayments);
    }
    let gone = answer(tx, known, record.id).await?;
    store::delete(tx.db(), account, record).await?;
    tx.count(kind.name(), record.created_at, -1);
    tx.removed(kind.name(), record.id);
    events::deleted(tx, record);
    Ok(gone)
}
