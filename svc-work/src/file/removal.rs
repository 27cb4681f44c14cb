//! Removing the bytes of deleted files. Done at once by whoever deletes a file; what that leaves behind, because the
//! object store was away or the process ended, is done here.

use chassis::files::Key;
use chassis::worker::{AT_ONCE, Due, Job, Next, Worker};
use chassis::{AccountId, Files, Tx};
use uuid::Uuid;

use super::store;
use crate::Error;

/// How many files one turn removes.
const BATCH: i64 = 100;

pub fn worker(files: Files) -> Worker {
    let due = Due::new("work.file work", "work.deleted_at is not null and work.removed_at is null", AT_ONCE);
    Worker::new("file-removal", due, move |job: Job| {
        let files = files.clone();
        async move { run(&files, &job).await }
    })
}

async fn run(files: &Files, job: &Job) -> Result<Next, chassis::Error> {
    let mut connection = job.db().read().await?;
    let leaving = store::list_leaving(&mut connection, job.account_id(), BATCH).await?;
    connection.done();
    let more = i64::try_from(leaving.len()).is_ok_and(|count| count >= BATCH);
    let mut gone = Vec::new();
    for (id, key, shared) in leaving {
        // A generated file that was made again has the key of the old one.
        if !shared {
            remove(files, job.account_id(), &key).await?;
        }
        gone.push(id);
    }
    job.write(&Gone(gone), mark_removed).await?;
    Ok(if more { Next::Now } else { Next::WhenDue })
}

/// Removes the bytes, if they are there.
pub async fn remove(files: &Files, account: AccountId, key: &str) -> Result<(), chassis::Error> {
    match Key::parse(account, key) {
        Some(key) => files.delete(&key).await,
        None => Err(chassis::Error::Internal(format!("the key {key} of a file is none"))),
    }
}

/// Deleted files whose bytes are gone.
pub struct Gone(pub Vec<Uuid>);

pub async fn mark_removed(tx: &mut Tx<'_>, Gone(ids): &Gone) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    tx.unaudited("the file was deleted before; its bytes are gone now");
    store::mark_removed(tx.db(), account, ids, now).await
}
