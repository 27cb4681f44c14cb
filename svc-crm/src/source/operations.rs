//! Changes of deal sources. Each locks the account's setup first, so that names stay unique and positions without gaps.

use chassis_data::Tx;
use proto::At;
use proto::crm::DealSource;

use super::{MAX_SOURCES, Record, rules, store};
use crate::error::Error;
use crate::{kind, ordering, setup};

const NOT_FOUND: Error = Error::NotFound("deal source");

/// All sources, after locking them.
async fn list_locked(tx: &mut Tx<'_>) -> Result<Vec<Record>, Error> {
    setup::operations::lock(tx).await?;
    let account = tx.account();
    store::list(tx.db(), account).await
}

pub(super) async fn create(tx: &mut Tx<'_>, name: &str) -> Result<Record, Error> {
    tx.valid()?;
    let sources = list_locked(tx).await?;
    let at = At::ROOT.name("name");
    ordering::check_length(sources.len(), MAX_SOURCES, "deal sources", &at, &mut tx.faults);
    rules::check_unique(name, &sources, &at, &mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let now = tx.now();
    store::insert(tx.db(), account, name, now).await?;
    let position = i32::try_from(sources.len() + 1).unwrap_or(i32::MAX);
    let record = Record { name: name.to_owned(), position };
    record_change(tx, &record);
    Ok(record)
}

pub(super) async fn rename(tx: &mut Tx<'_>, name: &str, new_name: &str) -> Result<Record, Error> {
    tx.valid()?;
    let sources = list_locked(tx).await?;
    let mut record = sources.iter().find(|source| source.name == name).cloned().ok_or(NOT_FOUND)?;
    if new_name == name {
        return Ok(record);
    }
    rules::check_unique(new_name, &sources, &At::ROOT.name("new_name"), &mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let now = tx.now();
    store::rename(tx.db(), account, name, new_name, now).await?;
    new_name.clone_into(&mut record.name);
    // The name is the id of a source in the log, so a rename removes one record and adds another.
    tx.removed(kind::DEAL_SOURCE, name);
    record_change(tx, &record);
    Ok(record)
}

pub(super) async fn delete(tx: &mut Tx<'_>, name: &str) -> Result<(), Error> {
    tx.valid()?;
    if !list_locked(tx).await?.iter().any(|source| source.name == name) {
        return Err(NOT_FOUND);
    }
    let account = tx.account();
    store::delete(tx.db(), account, name).await?;
    tx.removed(kind::DEAL_SOURCE, name);
    Ok(())
}

/// Puts all sources into the order of these names.
pub(super) async fn reorder(tx: &mut Tx<'_>, names: &[String]) -> Result<Vec<Record>, Error> {
    tx.valid()?;
    let existing: Vec<String> = list_locked(tx).await?.into_iter().map(|source| source.name).collect();
    let requested: Vec<Option<String>> = names.iter().cloned().map(Some).collect();
    ordering::check(&requested, &existing, "deal source", &At::ROOT.name("names"), &mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let now = tx.now();
    store::reorder(tx.db(), account, names, now).await?;
    let sources = store::list(tx.db(), account).await?;
    for source in &sources {
        record_change(tx, source);
    }
    Ok(sources)
}

/// Records the current source in the log.
fn record_change(tx: &mut Tx<'_>, record: &Record) {
    tx.changed(kind::DEAL_SOURCE, &record.name, &DealSource::from(record.clone()));
}
