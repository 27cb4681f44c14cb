//! Gives log entries their positions right after the commit that wrote them, then wakes the account's workers.
//!
//! Entries of a process that ends before that are numbered by [`recovery_worker`], which looks for them every few
//! seconds. It wakes the workers too, so a commit with log entries is never left to their sweeps.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chassis_base::AccountId;
use chassis_base::error::chain;
use chassis_data::wake::CommitListener;
use chassis_data::{Db, log};
use chassis_rpc::scope;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::definition::Worker;
use super::due::Due;
use super::job::{Job, Next};
use super::stop::{Stop, in_time, stopped};
use super::wake::Inbox;

/// How many accounts are numbered in parallel. Each takes a connection for two round trips.
const CONCURRENCY: usize = 4;
/// The minimum time between two batches of an account. The first entry after a pause is numbered at once; in a busy
/// account entries gather, so that a batch costs little for each.
const MIN_BATCH_INTERVAL: Duration = Duration::from_millis(20);
/// How often to look for entries that their process has left without a position. Those of a process that has ended are
/// looked for as soon as that is known, so this only counts for a call that was cancelled during its commit, and after
/// an error.
const RECOVERY_INTERVAL: Duration = Duration::from_secs(5);

/// Numbers entries whose process has ended before it could.
pub fn recovery_worker() -> Worker {
    // An entry is usually numbered within milliseconds by the process that wrote it.
    let due = Due::new("pending work", "true", "work.at").later("1 second");
    let number = |job: Job| async move {
        let has_more = log::number(job.db(), job.account_id()).await?;
        // The entries may have events for relays.
        job.db().wake_workers(job.account_id()).await;
        Ok(if has_more { Next::Now } else { Next::WhenDue })
    };
    Worker::new("number", due, number).every(RECOVERY_INTERVAL).overdue_only()
}

/// The accounts whose entries this process has to number.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<AccountId>,
    /// What is in `waiting`.
    known: HashSet<AccountId>,
    /// Accounts that are being numbered, or were a moment ago.
    resting: HashSet<AccountId>,
}

impl Queue {
    fn add(&mut self, account: AccountId) {
        if self.known.insert(account) {
            self.waiting.push_back(account);
        }
    }
}

pub(super) struct Sequencer {
    db: Db,
    inbox: Arc<Inbox>,
    queue: Mutex<Queue>,
    arrived: Notify,
}

impl CommitListener for Sequencer {
    fn committed(&self, account: AccountId, is_logged: bool) {
        if !is_logged {
            self.inbox.committed(account);
            return;
        }
        self.with_queue(|queue| queue.add(account));
        self.arrived.notify_one();
    }
}

impl Sequencer {
    pub(super) fn new(db: Db, inbox: Arc<Inbox>) -> Self {
        Self { db, inbox, queue: Mutex::default(), arrived: Notify::new() }
    }

    pub(super) async fn run(self: Arc<Self>, mut stop: Stop) {
        let mut jobs = JoinSet::new();
        loop {
            while jobs.len() < CONCURRENCY
                && let Some(account) = self.take()
            {
                jobs.spawn(Arc::clone(&self).number(account));
            }
            tokio::select! {
                () = stopped(&mut stop) => break,
                Some(_) = jobs.join_next() => {}
                () = self.arrived.notified() => {}
            }
        }
        // The last commits of the process, without a rest. What is missed here is found by the worker of another process.
        loop {
            while jobs.join_next().await.is_some() {}
            let last = self.with_queue(std::mem::take).waiting;
            if last.is_empty() {
                break;
            }
            for account in last {
                jobs.spawn(Arc::clone(&self).number(account));
            }
        }
    }

    /// The account that has waited longest and does not rest.
    fn take(&self) -> Option<AccountId> {
        self.with_queue(|queue| {
            let free = queue.waiting.iter().position(|account| !queue.resting.contains(account))?;
            let account = queue.waiting.remove(free)?;
            queue.known.remove(&account);
            queue.resting.insert(account);
            Some(account)
        })
    }

    async fn number(self: Arc<Self>, account: AccountId) {
        let rested = Instant::now() + MIN_BATCH_INTERVAL;
        let numbered = scope::background(account, in_time(log::number(&self.db, account)));
        let has_more = Box::pin(numbered).await.unwrap_or_else(|error| {
            tracing::warn!(%account, error = chain(&error), "log entries could not be numbered");
            false
        });
        // Behind the others, which may have waited meanwhile.
        if has_more {
            self.with_queue(|queue| queue.add(account));
        }
        self.inbox.committed(account);
        // Not part of the job, because resting accounts take no connection.
        tokio::spawn(async move {
            tokio::time::sleep_until(rested).await;
            self.with_queue(|queue| queue.resting.remove(&account));
            self.arrived.notify_one();
        });
    }

    fn with_queue<T>(&self, change: impl FnOnce(&mut Queue) -> T) -> T {
        change(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
