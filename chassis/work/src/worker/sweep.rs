//! The sweep over all accounts. It finds work that comes due without a commit, and work whose wake-up was lost.
//!
//! A sweep wakes accounts whose work is due before the sweep after the next; their worker waits for the exact time.
//! When the clock is moved past the swept time, another sweep starts immediately.
//!
//! Sweeps at intervals are rare, because nothing that somebody waits for is left to them. Every way to lose a wake-up
//! leads to a sweep, or to another wake-up, within seconds:
//!
//! - The process was killed after the commit. Its partitions get new owners, and new leases request a sweep. For the
//!   partitions of others, they notice that a replica is gone and request one ([`keeper`](super::keeper)). With a single
//!   replica, the next process begins with a sweep.
//! - A post to other processes failed. It is repeated, and the gap in the numbers requests a sweep
//!   ([`exchange`](super::exchange)). So does a post that was lost with the server.
//! - A post came before its reader knew of the other replica. The only replica reads posts too, less often, and they
//!   are kept for longer than that.
//! - The commit is in doubt. The account is woken as if it had succeeded.
//! - The call was cancelled during the commit. Its log entries are numbered by [`sequencer::recovery_worker`], which
//!   wakes the account. Only what is not logged, bookkeeping of the service for itself, waits for the next sweep.
//! - The query about a woken account failed. It is repeated until it succeeds ([`examine`](super::examine)).
//! - The lease was lost and taken again while a job ran. The account is examined after the job, as after every job.
//! - The sweep itself failed. It is repeated.
//!
//! [`sequencer::recovery_worker`]: super::sequencer::recovery_worker

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
const PAGE: i64 = 1000;
/// The wait before a failed sweep is retried.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// The same while a node is unreachable: the accounts on it are examined one by one meanwhile.
const NODE_RETRY_INTERVAL: Duration = Duration::from_secs(30);
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
        // Set before the query, so that a clock that moves forward during it causes another sweep. Not all workers, and
        // not all processes, sweep at the same time.
        let wait = board.sweep_interval.mul_f64(rand::random_range(0.75..=1.0));
        self.swept[number] = Swept { next_at: Instant::now() + wait, until: now + interval };
        let ahead = if board.is_overdue_only { TimeDelta::zero() } else { interval * 2 };
        let Err(error) = self.sweep(number, now + ahead).await else { return };
        tracing::warn!(worker = &*board.name, error = chain(&error), "due work could not be found");
        // In a distributed database, a statement timeout means that a node does not answer.
        let is_silent = due::is_distributed() && error.is_statement_timeout();
        let mut retry = RETRY_INTERVAL;
        if error.is_node_unreachable() || is_silent {
            match self.suspect_all(number).await {
                Ok(()) => retry = NODE_RETRY_INTERVAL,
                Err(error) => {
                    tracing::warn!(
                        worker = &*board.name,
                        error = chain(&error),
                        "accounts could not be listed"
                    );
                }
            }
        }
        self.swept[number].next_at = Instant::now() + retry.min(board.sweep_interval);
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
