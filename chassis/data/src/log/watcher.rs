//! Waiting for new entries of an account's log.
//!
//! The process that numbers entries notifies those who wait in it at once. What other processes number is found by one
//! query for all accounts that are waited for, every [`POLL_INTERVAL`]; it stops when nobody waits.

use std::time::Duration;

use chassis_base::error::chain;
use chassis_base::{AccountId, Error};
use tokio::sync::watch;
use uuid::Uuid;

use crate::db::Db;

/// How often heads of logs are looked up while somebody waits.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The same while the database does not answer.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Somebody who waits for entries of one account.
pub(super) struct Watcher {
    position: watch::Receiver<i64>,
}

impl Watcher {
    pub(super) fn new(db: &Db, account: AccountId) -> Self {
        let (position, begins) = db.watch.with(|waiting| {
            if waiting.is_stopped {
                // A receiver without a sender.
                return (watch::Sender::default().subscribe(), false);
            }
            let known = waiting.accounts.entry(account).or_default();
            (known.subscribe(), !std::mem::replace(&mut waiting.is_polling, true))
        });
        if begins {
            tokio::spawn(poll(db.clone()));
        }
        Self { position }
    }

    /// What is numbered from now on is noticed by [`changed`](Self::changed): read the log after this.
    pub(super) fn begin(&mut self) {
        self.position.mark_unchanged();
    }

    /// Returns when the log has changed, or false when nothing more is to be waited for, because the process stops.
    pub(super) async fn changed(&mut self) -> bool {
        self.position.changed().await.is_ok()
    }
}

/// Looks for what other processes have numbered, as long as somebody waits.
async fn poll(db: Db) {
    loop {
        let accounts = db.watch.with(|waiting| {
            waiting.accounts.retain(|_, known| known.receiver_count() > 0);
            waiting.is_polling = !waiting.accounts.is_empty();
            waiting.accounts.keys().map(|account| account.uuid()).collect::<Vec<Uuid>>()
        });
        if accounts.is_empty() {
            return;
        }
        let interval = match heads(&db, &accounts).await {
            Ok(heads) => {
                for (account, position) in heads {
                    db.watch.numbered(account, position);
                }
                POLL_INTERVAL
            }
            Err(error) => {
                tracing::debug!(error = chain(&error), "heads of logs could not be read");
                RETRY_INTERVAL
            }
        };
        tokio::time::sleep(interval).await;
    }
}

async fn heads(db: &Db, accounts: &[Uuid]) -> Result<Vec<(AccountId, i64)>, Error> {
    db.read(async |connection| {
        let sql = "select account_id, position from feed_head where account_id = any($1::uuid[])";
        Ok(sqlx::query_as(sql).bind(accounts).fetch_all(connection).await?)
    })
    .await
}
