//! The number of a document that a transaction stores.

use chassis_data::Tx;

use crate::document::store::{self, Numbering};
use crate::document::{Kind, Record};
use crate::error::Error;

/// The number that the caller chose, or the first of the sequence that is free. The counter is locked from here to the commit:
/// take a number as late as possible.
pub(crate) async fn take_number(tx: &mut Tx<'_>, kind: Kind, numbering: &Numbering) -> Result<String, Error> {
    if !numbering.given.is_empty() {
        return Ok(numbering.given.clone());
    }
    let account = tx.account();
    tx.wait_for_counter(&numbering.counter).await;
    let next = store::next_number(tx.db(), account, kind, numbering).await?;
    let value = if next.is_taken {
        store::skip_taken_numbers(tx.db(), account, kind, numbering, next.value).await?
    } else {
        next.value
    };
    tx.took_number(&numbering.counter, value);
    Ok(numbering.written(value))
}

/// Refuses a new document whose external id or chosen number another one has.
pub(crate) async fn refuse_taken(
    tx: &mut Tx<'_>,
    record: &Record,
    numbering: &Numbering,
) -> Result<(), Error> {
    let (account, kind) = (tx.account(), record.kind);
    if !record.external_id.is_empty() {
        let holder = store::find_by_external_id(tx.db(), account, kind, &record.external_id).await?;
        if holder.is_some() {
            return Err(Error::ExternalIdTaken { holder });
        }
    }
    if !numbering.given.is_empty() {
        let holder = store::find_by_number(tx.db(), account, kind, &numbering.given).await?;
        if holder.is_some() {
            return Err(Error::NumberTaken { holder });
        }
    }
    Ok(())
}
