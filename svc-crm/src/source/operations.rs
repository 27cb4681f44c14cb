//! Changes of deal sources. Each locks the account's setup first, so that names stay unique and positions without gaps.

use chassis_data::Tx;
use chassis_data::log::snapshot::Shown;
use chrono::{DateTime, Utc};
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
    let position = i32::try_from(sources.len() + 1).unwrap_or(i32::MAX);
    // The name of a removed source can be used again. Its changes are counted on.
    let version = tx.first_version(kind::DEAL_SOURCE, name).await?;
    let record = Record { name: name.to_owned(), position, version, updated_at: now };
    store::insert(tx.db(), account, &record).await?;
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
    new_name.clone_into(&mut record.name);
    record.version = tx.first_version(kind::DEAL_SOURCE, new_name).await?.max(record.version + 1);
    record.updated_at = now;
    store::rename(tx.db(), account, name, &record).await?;
    // The name is the id of a source in the log, so a rename removes one record and adds another.
    tx.removed(kind::DEAL_SOURCE, name);
    record_change(tx, &record);
    Ok(record)
}

pub(super) async fn delete(tx: &mut Tx<'_>, name: &str) -> Result<(), Error> {
    tx.valid()?;
    let mut sources = list_locked(tx).await?;
    let index = sources.iter().position(|source| source.name == name).ok_or(NOT_FOUND)?;
    sources.remove(index);
    let account = tx.account();
    let now = tx.now();
    store::delete(tx.db(), account, name).await?;
    tx.removed(kind::DEAL_SOURCE, name);
    renumber(tx, &mut sources, now).await
}

/// Puts all sources into the order of these names.
pub(super) async fn reorder(tx: &mut Tx<'_>, names: &[String]) -> Result<Vec<Record>, Error> {
    tx.valid()?;
    let mut sources = list_locked(tx).await?;
    let existing: Vec<String> = sources.iter().map(|source| source.name.clone()).collect();
    let requested: Vec<Option<String>> = names.iter().cloned().map(Some).collect();
    ordering::check(&requested, &existing, "deal source", &At::ROOT.name("names"), &mut tx.faults);
    tx.valid()?;
    let now = tx.now();
    sources.sort_by_key(|source| names.iter().position(|name| *name == source.name));
    renumber(tx, &mut sources, now).await?;
    Ok(sources)
}

/// Stores the places that the sources have in this list.
async fn renumber(tx: &mut Tx<'_>, sources: &mut [Record], now: DateTime<Utc>) -> Result<(), Error> {
    let moved = ordering::renumber(sources, now);
    if moved.is_empty() {
        return Ok(());
    }
    let account = tx.account();
    store::place(tx.db(), account, &moved, now).await?;
    for source in &moved {
        record_change(tx, source);
    }
    Ok(())
}

/// Records the current source in the log.
fn record_change(tx: &mut Tx<'_>, record: &Record) {
    tx.changed(kind::DEAL_SOURCE, &record.name, &DealSource::from(record.clone()));
}

/// Shows the sources with these names.
pub(crate) async fn show(tx: &mut Tx<'_>, names: &[String], shown: &mut Shown) -> Result<(), Error> {
    let account = tx.account();
    for source in store::list(tx.db(), account).await? {
        if names.contains(&source.name) {
            shown.add(source.name.clone(), &DealSource::from(source));
        }
    }
    Ok(())
}
