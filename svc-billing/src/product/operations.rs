//! What changes of products do.

use chassis_base::id;
use chassis_base::update_mask::UpdateMask;
use chassis_data::Tx;
use chassis_data::log::snapshot::{Shown, uuids};
use proto::billing::{Product, ProductInput};

use super::{NOT_FOUND, Record, rules, store};
use crate::error::Error;

const AUDIT_KIND: &str = "product";

pub(crate) async fn create(tx: &mut Tx<'_>, given: &ProductInput) -> Result<Record, Error> {
    let values = rules::apply(UpdateMask::All, given, &ProductInput::default(), &mut tx.faults);
    tx.valid()?;
    let (account, id, now) = (tx.account(), tx.id(), tx.now());
    let record = Record { id, values, created_at: now, updated_at: now, version: 1 };
    if !store::insert(tx.db(), account, &record).await? {
        let holder = store::find_holder(tx.db(), account, &record.values.code).await?;
        return Err(Error::CodeTaken { holder });
    }
    tx.list(&record.listing());
    Ok(record)
}

/// Changes the fields that the mask names; without a mask, all of them. A change that changes nothing stores nothing.
pub(crate) async fn update(
    tx: &mut Tx<'_>,
    id: &str,
    mask: UpdateMask<'_>,
    given: &ProductInput,
) -> Result<Record, Error> {
    id::ignore_malformed(&mut tx.faults);
    let (account, now) = (tx.account(), tx.now());
    let found = match id::parse(id) {
        Some(id) => store::find_locked(tx.db(), account, id).await?,
        None => None,
    };
    let current = found.as_ref().map(|record| record.values.clone()).unwrap_or_default();
    let values = rules::apply(mask, given, &current, &mut tx.faults);
    // Faults of the body are reported before an id that does not exist.
    tx.valid()?;
    let mut record = found.ok_or(NOT_FOUND)?;
    if values == record.values {
        tx.unaudited("it is as it was");
        return Ok(record);
    }
    // Looked up before the update: a refused update aborts the transaction, and the holder could no longer be read.
    if values.code != record.values.code
        && let Some(holder) = store::find_holder(tx.db(), account, &values.code).await?
    {
        return Err(Error::CodeTaken { holder: Some(holder) });
    }
    let before = record.listing();
    record.values = values;
    record.updated_at = now;
    record.version += 1;
    store::update(tx.db(), account, &record).await?;
    tx.relist(&before, &record.listing());
    Ok(record)
}

pub(crate) async fn delete(tx: &mut Tx<'_>, id: &str) -> Result<(), Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let id = id::parse(id).ok_or(NOT_FOUND)?;
    let record = store::delete(tx.db(), account, id).await?.ok_or(NOT_FOUND)?;
    tx.unlist(&record.listing());
    tx.removed(AUDIT_KIND, id);
    Ok(())
}

/// Shows the products with these ids.
pub(crate) async fn show(tx: &mut Tx<'_>, ids: &[String], shown: &mut Shown) -> Result<(), Error> {
    let account = tx.account();
    for id in uuids(ids) {
        if let Some(record) = store::find(tx.db(), account, id).await? {
            shown.add(id, &Product::from(record));
        }
    }
    Ok(())
}
