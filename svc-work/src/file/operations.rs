//! Changes of files. Bytes are stored before the row that refers to them and removed after it is deleted, so that a row
//! never refers to bytes that do not exist. A crash in between leaves bytes that no row refers to: those of an upload
//! are removed by chassis after a day, those of a deleted file by the worker.

use chassis_base::{Account, AccountId, id};
use chassis_data::log::snapshot::{Shown, uuids};
use chassis_data::{Db, Tx};
use chassis_work::Files;
use chassis_work::files::{self, Key};
use proto::work::File;
use uuid::Uuid;

use super::{DownloadLinks, Record, store};
use crate::error::Error;

const NOT_FOUND: Error = Error::NotFound("file");
pub(crate) const AUDIT_KIND: &str = "file";

/// Creates the row of an upload whose bytes are stored. Returns the file as it is shown.
pub(crate) async fn create(tx: &mut Tx<'_>, record: &Record, links: &DownloadLinks) -> Result<File, Error> {
    tx.valid()?;
    let now = tx.now();
    let record = Record { created_at: now, updated_at: now, ..record.clone() };
    // From this commit on chassis no longer removes the bytes as those of an abandoned upload.
    files::list(tx, std::slice::from_ref(&record.key)).await?;
    insert(tx, record, links).await
}

/// Creates the row of a file that another service has stored. Repeating it has no effect: the file keeps its id, and
/// bytes have one row. Of a generated file only the newest version stays, because the events of different versions can
/// come in any order.
pub(crate) async fn create_external(
    tx: &mut Tx<'_>,
    record: Record,
    links: &DownloadLinks,
) -> Result<(), Error> {
    let account = tx.account();
    let now = tx.now();
    // Versions count from 1, and the first one replaces nothing.
    if record.source.version.is_some_and(|version| version > 1) {
        let others = store::list_generated_locked(tx.db(), account, &record.source).await?;
        if others.iter().any(|other| other.source.version > record.source.version) {
            return Ok(());
        }
        for old in others.iter().filter(|other| other.source.version < record.source.version) {
            if store::delete(tx.db(), account, old.id, now).await?.is_some() {
                record_deletion(tx, old);
            }
        }
    }
    insert(tx, record, links).await?;
    Ok(())
}

/// Deletes files of other services, which want them to be forgotten. The worker removes their bytes.
pub(crate) async fn remove_external(tx: &mut Tx<'_>, ids: &[Uuid]) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    for id in ids {
        tx.unaudited("a file that is gone changes nothing");
        if let Some(record) = store::delete(tx.db(), account, *id, now).await? {
            tx.forget_history(AUDIT_KIND, &[id.to_string()]).await?;
            record_deletion(tx, &record);
        }
    }
    Ok(())
}

async fn insert(tx: &mut Tx<'_>, record: Record, links: &DownloadLinks) -> Result<File, Error> {
    let account = tx.account();
    let (id, listing, now) = (record.id, record.listing(), tx.now());
    let is_new = store::insert(tx.db(), account, &record).await?;
    // The log stores the file as it is shown, with a download link. It is of use for an hour only.
    let file = links.message(account, record, now);
    if is_new {
        tx.list(&listing);
        tx.changed(AUDIT_KIND, id, &file);
    }
    Ok(file)
}

/// Deletes the row of a file. Its bytes are removed after the commit, by [`remove_bytes_now`] or by the worker.
pub(crate) async fn delete(tx: &mut Tx<'_>, id: &str) -> Result<(), Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let now = tx.now();
    let id = id::parse(id).ok_or(NOT_FOUND)?;
    let record = store::delete(tx.db(), account, id, now).await?.ok_or(NOT_FOUND)?;
    record_deletion(tx, &record);
    Ok(())
}

fn record_deletion(tx: &mut Tx<'_>, record: &Record) {
    tx.unlist(&record.listing());
    tx.removed(AUDIT_KIND, record.id);
}

/// Removes the bytes of a file that was just deleted. An error is only logged: the worker tries again.
pub(crate) async fn remove_bytes_now(db: &Db, files: &Files, account: &Account, record: &Record) {
    let removed = match remove_bytes(files, account.id, &record.key).await {
        Ok(()) => db.record(account, &RemovedFiles(vec![record.id]), mark_removed).await,
        Err(error) => Err(error),
    };
    if let Err(error) = removed {
        tracing::warn!(%error, file = %record.id, "removal of the bytes of a file deferred");
    }
}

/// Removes bytes from the object store. Bytes that do not exist are not an error.
pub(crate) async fn remove_bytes(
    files: &Files,
    account: AccountId,
    key: &str,
) -> Result<(), chassis_base::Error> {
    match Key::parse(account, key) {
        Some(key) => files.delete(&key).await,
        None => Err(chassis_base::Error::Internal(format!("file.key is {key:?}, which is not a key"))),
    }
}

/// The ids of deleted files whose bytes were removed.
pub(crate) struct RemovedFiles(pub Vec<Uuid>);

/// Stores that the bytes of deleted files were removed.
pub(crate) async fn mark_removed(tx: &mut Tx<'_>, RemovedFiles(ids): &RemovedFiles) -> Result<(), Error> {
    let account = tx.account();
    let now = tx.now();
    tx.unaudited("the deletion of the file is in the log already; now its bytes are removed");
    store::mark_removed(tx.db(), account, ids, now).await
}

/// Shows the files with these ids, with download links.
pub(crate) async fn show(
    tx: &mut Tx<'_>,
    links: &DownloadLinks,
    ids: &[String],
    shown: &mut Shown,
) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    for id in uuids(ids) {
        if let Some(record) = store::find(tx.db(), account, id).await? {
            shown.add(id, &links.message(account, record, now));
        }
    }
    Ok(())
}
