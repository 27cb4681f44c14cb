//! Removes files that no entry lists. A write is recorded before the bytes are stored, and the transaction that lists
//! the file deletes this record. So an old record identifies bytes that were never listed, for example after a crash,
//! and they are removed. A file without a record cannot be listed, so an entry always has its bytes.

use std::time::Duration;

use chassis_base::error::status::unavailable;
use chassis_base::{Account, Error};
use chassis_data::db::Db;
use chassis_data::write::Tx;
use chassis_rpc::scope;
use chrono::TimeDelta;

use super::{Files, Key};
use crate::worker::{Due, Job, Next, Worker};

/// How long bytes may stay unlisted. Must match `due` below.
const RETENTION: TimeDelta = TimeDelta::days(1);
/// How many files one job removes.
const BATCH: i64 = 100;
const INTERVAL: Duration = Duration::from_hours(1);

/// References of files, from [`Files::reference`].
struct Names(Vec<String>);

impl Files {
    /// Records that files will be written under these keys, each new and used once. Call [`Files::put`] next, then
    /// [`list`] in the transaction that lists them.
    pub async fn expect(&self, db: &Db, account: &Account, keys: &[Key]) -> Result<(), Error> {
        // The record would be undone before `list` looks for it.
        if keys.is_empty() || scope::is_dry_run() {
            return Ok(());
        }
        let names = Names(keys.iter().map(|key| self.reference(key)).collect());
        db.record(account, &names, expect).await
    }
}

/// Marks files as listed by this transaction, by their [`Files::reference`]. Fails if one was abandoned.
pub async fn list(tx: &mut Tx<'_>, names: &[String]) -> Result<(), Error> {
    if names.is_empty() || scope::is_dry_run() {
        return Ok(());
    }
    let account = tx.account();
    let listed =
        sqlx::query("delete from file_write where account_id = $1 and key = any($2) and not abandoned")
            .bind(account)
            .bind(names)
            .execute(tx.db())
            .await?;
    if usize::try_from(listed.rows_affected()) == Ok(names.len()) {
        return Ok(());
    }
    let late = unavailable("The file took too long to arrive. Repeat the request.");
    Err(Error::Peer(Box::new(late)))
}

async fn expect(tx: &mut Tx<'_>, Names(names): &Names) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    sqlx::query(
        "insert into file_write (account_id, key, began_at)
         select $1, key, $3 from unnest($2::text[]) as t (key)",
    )
    .bind(account)
    .bind(names)
    .bind(now)
    .execute(tx.db())
    .await?;
    Ok(())
}

/// The worker that removes files that were never listed.
pub fn worker(files: Files) -> Worker {
    let due = Due::new("file_write work", "true", "work.began_at").later("1 day");
    Worker::new("file-writes", due, move |job: Job| {
        let files = files.clone();
        async move { run(&files, &job).await }
    })
    .every(INTERVAL)
}

async fn run(files: &Files, job: &Job) -> Result<Next, Error> {
    let names = job.write(&(), abandon).await?;
    for name in &names.0 {
        if let Some(key) = Key::parse(job.account_id(), name) {
            files.delete(&key).await?;
        } else {
            tracing::error!(name, "a recorded file write has an invalid reference");
        }
    }
    // Records go last: after a crash before this, the next job deletes the same files again.
    job.write(&names, forget).await?;
    let removed = i64::try_from(names.0.len()).unwrap_or(i64::MAX);
    if removed > 0 {
        tracing::info!(removed, "removed files that were never listed");
    }
    Ok(if removed >= BATCH { Next::Now } else { Next::WhenDue })
}

/// Marks old records as abandoned. This commits before the bytes are deleted, so that no transaction can list them
/// anymore.
async fn abandon(tx: &mut Tx<'_>, (): &()) -> Result<Names, Error> {
    let (account, now) = (tx.account(), tx.now());
    let names = sqlx::query_scalar(
        "update file_write set abandoned = true where account_id = $1 and key in (
            select key from file_write where account_id = $1 and began_at <= $2 order by key limit $3)
         returning key",
    )
    .bind(account)
    .bind(now - RETENTION)
    .bind(BATCH)
    .fetch_all(tx.db())
    .await?;
    Ok(Names(names))
}

async fn forget(tx: &mut Tx<'_>, Names(names): &Names) -> Result<(), Error> {
    let account = tx.account();
    sqlx::query("delete from file_write where account_id = $1 and key = any($2) and abandoned")
        .bind(account)
        .bind(names)
        .execute(tx.db())
        .await?;
    Ok(())
}
