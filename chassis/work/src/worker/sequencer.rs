//! Gives log entries their positions right after the commit that wrote them, then wakes the account's workers.
//!
//! Entries of a process that ends before that are numbered by [`recovery_worker`], which looks for them every few
//! seconds. It wakes the workers too, so a commit with log entries is never left to their sweeps.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chassis_base::AccountId;
use chassis_base::error::chain;
use chassis_data::wake::{CommitListener, Logged};
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
/// How long entries wait at most for those of an amendment, which usually follows within tens of milliseconds.
const MAX_WAIT_FOR_AMENDMENT: Duration = Duration::from_millis(200);
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
    /// Accounts in which an amendment is awaited, and until when.
    held: HashMap<AccountId, Instant>,
    /// Accounts that are being numbered, or were a moment ago.
    resting: HashSet<AccountId>,
}

impl Queue {
    fn add(&mut self, account: AccountId) {
        // All entries of an account are numbered together.
        self.held.remove(&account);
        if self.known.insert(account) {
            self.waiting.push_back(account);
        }
    }

    /// Adds the account later, unless it is added before. The first of several commits decides when.
    fn hold(&mut self, account: AccountId, until: Instant) {
        if !self.known.contains(&account) {
            self.held.entry(account).or_insert(until);
        }
    }

    /// Adds the accounts that have been held until now. Returns when the next one is to be added.
    fn release(&mut self, now: Instant) -> Option<Instant> {
        let due: Vec<AccountId> =
            self.held.iter().filter(|(_, until)| **until <= now).map(|(account, _)| *account).collect();
        for account in due {
            self.add(account);
        }
        self.held.values().min().copied()
    }
}

pub(super) struct Sequencer {
    db: Db,
    inbox: Arc<Inbox>,
    queue: Mutex<Queue>,
    arrived: Notify,
}

impl CommitListener for Sequencer {
    fn committed(&self, account: AccountId, logged: Logged) {
        match logged {
            Logged::Nothing => self.inbox.committed(account),
            Logged::Entries => {
                self.with_queue(|queue| queue.add(account));
                self.arrived.notify_one();
            }
            Logged::EntriesBeforeAmendment => {
                let until = Instant::now() + MAX_WAIT_FOR_AMENDMENT;
                self.with_queue(|queue| queue.hold(account, until));
                self.arrived.notify_one();
            }
        }
    }
}

impl Sequencer {
    pub(super) fn new(db: Db, inbox: Arc<Inbox>) -> Self {
        Self { db, inbox, queue: Mutex::default(), arrived: Notify::new() }
    }

    pub(super) async fn run(self: Arc<Self>, mut stop: Stop) {
        let mut jobs = JoinSet::new();
        loop {
            let release_at = self.with_queue(|queue| queue.release(Instant::now()));
            while jobs.len() < CONCURRENCY
                && let Some(account) = self.take()
            {
                jobs.spawn(Arc::clone(&self).number(account));
            }
            tokio::select! {
                () = stopped(&mut stop) => break,
                Some(_) = jobs.join_next() => {}
                () = self.arrived.notified() => {}
                () = until(release_at) => {}
            }
        }
        // The last commits of the process, without a rest. What is missed here is found by the worker of another process.
        loop {
            while jobs.join_next().await.is_some() {}
            let Queue { waiting, held, .. } = self.with_queue(std::mem::take);
            if waiting.is_empty() && held.is_empty() {
                break;
            }
            for account in waiting.into_iter().chain(held.into_keys()) {
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

/// Never, without a time.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(number: u128) -> AccountId {
        AccountId::trust(uuid::Uuid::from_u128(number))
    }

    #[test]
    fn entries_wait_for_an_amendment_but_not_for_ever() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        let [soon, later] = [1, 2].map(|seconds| now + Duration::from_secs(seconds));
        queue.hold(account(1), soon);
        queue.hold(account(2), later);
        queue.hold(account(1), later);
        assert_eq!((queue.release(now), queue.waiting.len()), (Some(soon), 0));
        assert_eq!(queue.release(soon), Some(later), "another commit did not make the first wait longer");
        assert_eq!(queue.waiting, [account(1)]);
        queue.add(account(2));
        assert_eq!((queue.release(soon), queue.waiting.len()), (None, 2), "the amendment has come");
        queue.hold(account(2), later);
        assert!(queue.held.is_empty(), "it is in the queue anyway");
    }
}
