//! The periodic sweep over all accounts. It finds work that comes due without a commit, and work whose wake-up was lost
//! because its process crashed.
//!
//! A sweep wakes accounts whose work is due before the sweep after the next; their worker waits for the exact time.
//! When the clock is moved past the swept time, another sweep starts immediately.

use std::sync::Arc;
use std::time::Duration;

use chassis_base::error::chain;
use chassis_base::{AccountId, Error};
use chassis_data::db::Db;
use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;
use uuid::Uuid;

use super::board::Boards;
use super::due;
use super::stop::{Stop, in_time, stopped};
use crate::interval::every;

/// How many accounts one query returns.
const PAGE: i64 = 500;
/// The wait before a failed sweep is retried.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// How often the accounts are copied to a table that can be read while a node is unreachable.
const LISTING_INTERVAL: Duration = Duration::from_mins(10);

/// The progress of one worker's sweeps.
struct Swept {
    next_at: Instant,
    until: DateTime<Utc>,
}

pub(super) struct Sweeper {
    db: Db,
    boards: Arc<Boards>,
    poll: Duration,
    swept: Vec<Swept>,
    list_at: Instant,
}

impl Sweeper {
    pub(super) fn new(db: Db, boards: Arc<Boards>, poll: Duration) -> Self {
        let begin = || Swept { next_at: Instant::now(), until: DateTime::UNIX_EPOCH };
        let swept = boards.all.iter().map(|_| begin()).collect();
        Self { db, boards, poll, swept, list_at: Instant::now() }
    }

    pub(super) async fn run(mut self, mut stop: Stop) {
        let mut ticker = every(self.poll);
        loop {
            tokio::select! {
                () = stopped(&mut stop) => break,
                _ = ticker.tick() => {
                    for number in 0..self.swept.len() {
                        self.sweep_if_due(number).await;
                    }
                    self.list_if_due().await;
                }
            }
        }
    }

    async fn sweep_if_due(&mut self, number: usize) {
        let (board, now) = (Arc::clone(&self.boards.all[number]), self.db.clock().now());
        let is_due = || Instant::now() >= self.swept[number].next_at || now >= self.swept[number].until;
        if !board.holds_any() || !(board.take_request() || is_due()) {
            return;
        }
        let interval = TimeDelta::from_std(board.sweep_interval).unwrap_or(TimeDelta::MAX);
        // Set before the query, so that a clock that moves forward during it causes another sweep.
        self.swept[number] = Swept { next_at: Instant::now() + board.sweep_interval, until: now + interval };
        let Err(error) = self.sweep(number, now + interval * 2).await else { return };
        tracing::warn!(worker = &*board.name, error = chain(&error), "due work could not be found");
        // In a distributed database, a statement timeout means that a node does not answer.
        let is_silent = due::is_distributed() && error.is_statement_timeout();
        if !error.is_node_unreachable() && !is_silent {
            self.swept[number].next_at = Instant::now() + RETRY_INTERVAL;
        } else if let Err(error) = self.suspect_all(number).await {
            tracing::warn!(worker = &*board.name, error = chain(&error), "accounts could not be listed");
        }
    }

    async fn sweep(&self, number: usize, until: DateTime<Utc>) -> Result<(), Error> {
        let board = &self.boards.all[number];
        let mut after = Uuid::nil();
        loop {
            let page = in_time(async {
                let page = self
                    .db
                    .read(async |connection| board.due.find(connection, after, until, PAGE).await)
                    .await?;
                Ok::<_, Error>(page)
            });
            let page = page.await?;
            for account in page.iter().filter(|account| board.holds(**account)) {
                self.boards.inbox.wake(*account, 1 << number);
            }
            match page.last() {
                Some(last) if i64::try_from(page.len()).is_ok_and(|count| count == PAGE) => {
                    after = last.uuid();
                }
                _ => return Ok(()),
            }
        }
    }

    /// While a node is unreachable, no query over all accounts succeeds, so each account is examined separately.
    async fn suspect_all(&self, number: usize) -> Result<(), Error> {
        let board = &self.boards.all[number];
        let mut after = Uuid::nil();
        loop {
            let sql =
                "select account_id from known_account where account_id > $1 order by account_id limit $2";
            let page = in_time(async {
                let page = self
                    .db
                    .read(async |connection| {
                        let page: Vec<AccountId> = sqlx::query_scalar(sql)
                            .bind(after)
                            .bind(PAGE)
                            .fetch_all(&mut *connection)
                            .await?;
                        Ok::<_, Error>(page)
                    })
                    .await?;
                Ok::<_, Error>(page)
            });
            let page = page.await?;
            for account in page.iter().filter(|account| board.holds(**account)) {
                self.boards.inbox.suspect(*account, 1 << number);
            }
            let Some(last) = page.last() else { return Ok(()) };
            after = last.uuid();
        }
    }

    /// Only for a database with several nodes: with a single node, all accounts are reachable or none.
    async fn list_if_due(&mut self) {
        if !due::is_distributed() || Instant::now() < self.list_at {
            return;
        }
        self.list_at = Instant::now() + LISTING_INTERVAL;
        let listed = self.db.autocommit(async |connection| {
            sqlx::query("insert into known_account (account_id) select account_id from account on conflict do nothing")
                .execute(connection)
                .await?;
            Ok::<_, Error>(())
        });
        if let Err(error) = in_time(listed).await {
            tracing::warn!(error = chain(&error), "the list of accounts could not be updated");
        }
    }
}
