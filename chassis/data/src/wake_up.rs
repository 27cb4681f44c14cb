//! Wakes background work after a commit: that of this process directly, that of others by way of the database.

use std::time::Duration;

use chassis_base::error::chain;
use chassis_base::{AccountId, Clock, Error};
use chrono::TimeDelta;
use uuid::Uuid;

use crate::db::Db;

/// How long a post is kept. A process that does not read for so long has lost its leases, and sweeps when it gets new
/// ones.
const RETENTION: TimeDelta = TimeDelta::minutes(1);
/// How long a post may take: longer than any statement, so only a database that is gone without a word takes longer.
const POST_TIMEOUT: Duration = Duration::from_secs(20);

impl Db {
    /// Has the workers of all processes look at an account whose rows may have changed. One that is not told, as when
    /// the process ends just now, is found by the next sweep.
    pub async fn wake_workers(&self, account: AccountId) {
        if account.uuid().is_nil() || self.wake.tell(account) {
            return;
        }
        // A command, or a service without background work of its own.
        let accounts = [account.uuid()];
        if let Err(error) = Box::pin(post_wake_up(self, Uuid::new_v4(), 1, &accounts)).await {
            tracing::warn!(%account, error = chain(&error), "other processes were not told of new work");
        }
    }
}

/// Tells the workers of other processes of accounts. `number` counts the posts of `process`, so that a reader notices one
/// that is missing.
pub async fn post_wake_up(db: &Db, process: Uuid, number: i64, accounts: &[Uuid]) -> Result<(), Error> {
    let posting = insert(db, process, number, accounts);
    let posted = tokio::time::timeout(POST_TIMEOUT, posting).await;
    posted.map_err(|_| Error::from(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())))?
}

async fn insert(db: &Db, process: Uuid, number: i64, accounts: &[Uuid]) -> Result<(), Error> {
    // Real time, whatever the service's clock says: posts are forgotten by how long they have been there.
    let now = Clock::system().now();
    db.autocommit(async |connection| {
        sqlx::query(
            "with forgotten as (delete from wake_up where posted_at < $4)
             insert into wake_up (process, number, accounts, posted_at) values ($1, $2, $3, $5)",
        )
        .bind(process)
        .bind(number)
        .bind(accounts)
        .bind(now - RETENTION)
        .bind(now)
        .execute(&mut *connection)
        .await?;
        Ok(())
    })
    .await
}
