//! The state that the loops of a process share about each worker: which partitions it holds, which work it looks for,
//! and the channel that reports due accounts to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use chassis_base::account::PARTITIONS;
use chassis_base::{Account, AccountId};
use chrono::{DateTime, Utc};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::definition::Worker;
use super::due::Due;
use super::holding::{Change, Holding, Leases};
use super::wake::{Inbox, Which};

const _: () = assert!(PARTITIONS <= 64, "a bit for each partition");

/// When one worker is next due for an account.
pub(super) struct Found {
    pub account: Arc<Account>,
    /// When the query started.
    pub asked: Instant,
    pub at: Option<DateTime<Utc>>,
}

/// The shared state of one worker.
pub(super) struct Board {
    pub name: Arc<str>,
    pub due: Due,
    /// Whether every commit wakes the worker; otherwise only sweeps find its work.
    pub is_prompt: bool,
    pub is_overdue_only: bool,
    pub sweep_interval: Duration,
    holding: Holding,
    /// The partitions of `holding`, one bit each, for the many who only ask for them.
    held: AtomicU64,
    /// Whether more than the fair share is held, so that another replica waits for partitions.
    is_excessive: AtomicBool,
    /// Notified when partitions were lost or given back, or when `is_excessive` changes.
    pub leases_changed: Notify,
    needs_sweep: AtomicBool,
    found: mpsc::UnboundedSender<Found>,
}

impl Board {
    /// `sweep_interval` is that of workers without an interval of their own.
    pub(super) fn new(worker: &Worker, sweep_interval: Duration) -> (Self, mpsc::UnboundedReceiver<Found>) {
        let (found, receiver) = mpsc::unbounded_channel();
        let board = Self {
            name: Arc::clone(&worker.name),
            due: worker.due.clone(),
            is_prompt: worker.interval.is_none(),
            is_overdue_only: worker.is_overdue_only,
            sweep_interval: worker.interval.unwrap_or(sweep_interval),
            holding: Holding::default(),
            held: AtomicU64::new(0),
            is_excessive: AtomicBool::new(false),
            leases_changed: Notify::new(),
            needs_sweep: AtomicBool::new(false),
            found,
        };
        (board, receiver)
    }

    /// Sets the leases that the worker holds now, and until when. A sweep follows when some are new, because earlier
    /// wake-ups in them did not reach this process.
    pub(super) fn hold(&self, leases: Leases, until: DateTime<Utc>) {
        let held = bits(leases.keys());
        let Change { has_new, has_lost } = self.holding.replace(leases, until);
        self.held.store(held, Ordering::Relaxed);
        if has_new {
            self.request_sweep();
        }
        if has_lost {
            self.leases_changed.notify_one();
        }
    }

    /// Gives up to `count` partitions without jobs up, before they are given back.
    pub(super) fn give_up_idle(&self, count: usize) -> Vec<u16> {
        if count == 0 {
            return Vec::new();
        }
        let idle = self.holding.remove_idle(count);
        self.held.fetch_and(!bits(&idle), Ordering::Relaxed);
        self.leases_changed.notify_one();
        idle
    }

    pub(super) fn leases(&self) -> Leases {
        self.holding.leases()
    }

    /// How many partitions are held.
    pub(super) fn count(&self) -> u32 {
        self.held.load(Ordering::Relaxed).count_ones()
    }

    /// Keeps the account's partition until [`remove_job`](Self::remove_job). False if it is not held.
    pub(super) fn add_job(&self, account: AccountId) -> bool {
        self.holding.add_job(account.partition())
    }

    pub(super) fn remove_job(&self, account: AccountId) {
        self.holding.remove_job(account.partition());
    }

    /// The fence of the account's partition.
    pub(super) fn fence(&self, account: AccountId) -> Option<i64> {
        self.holding.fence(account.partition())
    }

    /// Whether jobs may begin: the leases have not expired, so that no other process has taken one.
    pub(super) fn is_current(&self, now: DateTime<Utc>) -> bool {
        self.holding.is_current(now)
    }

    pub(super) fn set_excessive(&self, is_excessive: bool) {
        if self.is_excessive.swap(is_excessive, Ordering::Relaxed) != is_excessive {
            self.leases_changed.notify_one();
        }
    }

    pub(super) fn is_excessive(&self) -> bool {
        self.is_excessive.load(Ordering::Relaxed)
    }

    pub(super) fn holds(&self, account: AccountId) -> bool {
        self.held.load(Ordering::Relaxed) & 1 << account.partition() != 0
    }

    pub(super) fn holds_any(&self) -> bool {
        self.held.load(Ordering::Relaxed) != 0
    }

    /// Whether the worker holds the first partition, which only one replica does at a time.
    pub(super) fn is_first(&self) -> bool {
        self.held.load(Ordering::Relaxed) & 1 != 0
    }

    /// Requests a sweep, because wake-ups may have been lost.
    pub(super) fn request_sweep(&self) {
        self.needs_sweep.store(true, Ordering::Relaxed);
    }

    pub(super) fn take_request(&self) -> bool {
        self.needs_sweep.swap(false, Ordering::Relaxed)
    }

    pub(super) fn report(&self, found: Found) {
        // Sending fails only when the worker has stopped.
        let _ = self.found.send(found);
    }
}

fn bits<'a>(partitions: impl IntoIterator<Item = &'a u16>) -> u64 {
    partitions.into_iter().fold(0, |bits, partition| bits | 1 << partition)
}

/// All workers of a process, indexed by number, and their wake-ups.
pub(super) struct Boards {
    pub inbox: Arc<Inbox>,
    pub all: Vec<Arc<Board>>,
    /// The live replicas of the service, with this one. 0 until they were counted.
    replicas: AtomicUsize,
}

impl Boards {
    pub(super) fn new(inbox: Arc<Inbox>, all: Vec<Arc<Board>>) -> Self {
        Self { inbox, all, replicas: AtomicUsize::new(0) }
    }

    pub(super) fn set_replicas(&self, count: usize) {
        self.replicas.store(count, Ordering::Relaxed);
    }

    /// Whether no other replica is known that could post wake-ups.
    pub(super) fn is_only_replica(&self) -> bool {
        self.replicas.load(Ordering::Relaxed) == 1
    }

    /// The workers of this process that hold the account's partition.
    pub(super) fn holders(&self, account: AccountId) -> Which {
        let holders = self.all.iter().enumerate().filter(|(_, board)| board.holds(account));
        holders.fold(0, |which, (number, _)| which | 1 << number)
    }

    /// Whether this process holds the account for all prompt workers, so that no other process needs the wake-up.
    pub(super) fn has_all_of(&self, account: AccountId) -> bool {
        self.all.iter().filter(|board| board.is_prompt).all(|board| board.holds(account))
    }

    pub(super) fn request_sweeps(&self) {
        self.all.iter().for_each(|board| board.request_sweep());
    }
}
