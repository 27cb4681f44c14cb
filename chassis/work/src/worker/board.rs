//! The state that the loops of a process share about each worker: which partitions it holds, which work it looks for,
//! and the channel that reports due accounts to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use chassis_base::account::PARTITIONS;
use chassis_base::{Account, AccountId};
use chrono::{DateTime, Utc};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::due::Due;
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
    pub sweep_interval: Duration,
    held: AtomicU64,
    needs_sweep: AtomicBool,
    found: mpsc::UnboundedSender<Found>,
}

impl Board {
    pub(super) fn new(
        name: Arc<str>,
        due: Due,
        is_prompt: bool,
        sweep_interval: Duration,
    ) -> (Self, mpsc::UnboundedReceiver<Found>) {
        let (found, receiver) = mpsc::unbounded_channel();
        let (held, needs_sweep) = (AtomicU64::new(0), AtomicBool::new(false));
        (Self { name, due, is_prompt, sweep_interval, held, needs_sweep, found }, receiver)
    }

    /// Sets the partitions that the worker holds now.
    pub(super) fn hold(&self, partitions: impl Iterator<Item = u16>) {
        self.held.store(partitions.fold(0, |held, partition| held | 1 << partition), Ordering::Relaxed);
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

    /// Requests a sweep. Wake-ups for newly leased partitions went to their previous owner.
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

/// All workers of a process, indexed by number, and their wake-ups.
pub(super) struct Boards {
    pub inbox: Arc<Inbox>,
    pub all: Vec<Arc<Board>>,
}

impl Boards {
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
