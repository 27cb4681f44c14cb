//! Wakes background work after a commit: in this process directly, in other processes through a table.

use std::time::Duration;

use chassis_base::error::chain;
use chassis_base::{AccountId, Clock, Error};
use chrono::TimeDelta;
use uuid::Uuid;

use crate::db::Db;
use crate::log;
use crate::wake::Logged;

/// How long a post is kept. A process that does not read for longer has lost its leases, and sweeps when it acquires
/// new ones.
const RETENTION: TimeDelta = TimeDelta::minutes(1);
/// How long a post may take. It is longer than any statement may run, so only an unresponsive database exceeds it.
const POST_TIMEOUT: Duration = Duration::from_secs(20);

impl Db {
    /// Makes the workers of all processes check an account whose rows may have changed. If the notification is lost,
    /// for example because the process ends, the next sweep finds the work.
    pub async fn wake_workers(&self, account: AccountId) {
        self.committed(account, Logged::Nothing).await;
    }

    pub(crate) async fn committed(&self, account: AccountId, logged: Logged) {
        if account.uuid().is_nil() || self.wake.notify(account, logged) {
            return;
        }
        // This is a command, or a service without background work: only other processes have workers.
        let mut has_more = logged != Logged::Nothing;
        while has_more {
            has_more = Box::pin(log::number(self, account)).await.unwrap_or_else(|error| {
                tracing::warn!(%account, error = chain(&error), "log entries could not be numbered");
                false
            });
        }
        let accounts = [account.uuid()];
        if let Err(error) = Box::pin(post_wake_up(self, Uuid::new_v4(), 1, &accounts)).await {
            tracing::warn!(%account, error = chain(&error), "posting a wake-up for other processes failed");
        }
    }
}

/// Posts accounts to the workers of other processes. `number` counts the posts of `process`, so that a reader detects a
/// missing one.
pub async fn post_wake_up(db: &Db, process: Uuid, number: i64, accounts: &[Uuid]) -> Result<(), Error> {
    let posting = insert(db, process, number, accounts);
    let posted = tokio::time::timeout(POST_TIMEOUT, posting).await;
    posted.map_err(|_| Error::from(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())))?
}

async fn insert(db: &Db, process: Uuid, number: i64, accounts: &[Uuid]) -> Result<(), Error> {
    // System time and not the service's clock, which tests hold still: posts are deleted by their real age.
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
