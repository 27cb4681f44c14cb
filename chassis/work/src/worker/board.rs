//! What the workers of a process show each other: which partitions each holds, what it looks for, and where to tell it
//! of accounts.

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
    /// When the database was asked.
    pub asked: Instant,
    pub at: Option<DateTime<Utc>>,
}

/// One worker's.
pub(super) struct Board {
    pub name: Arc<str>,
    pub due: Due,
    /// Whether it is told of every commit, or finds its work by sweeps alone.
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

    /// Says which partitions the worker holds now.
    pub(super) fn hold(&self, partitions: impl Iterator<Item = u16>) {
        self.held.store(partitions.fold(0, |held, partition| held | 1 << partition), Ordering::Relaxed);
    }

    pub(super) fn holds(&self, account: AccountId) -> bool {
        self.held.load(Ordering::Relaxed) & 1 << account.partition() != 0
    }

    pub(super) fn holds_any(&self) -> bool {
        self.held.load(Ordering::Relaxed) != 0
    }

    /// Whether the worker holds the first partition, as that of one replica does.
    pub(super) fn is_first(&self) -> bool {
        self.held.load(Ordering::Relaxed) & 1 != 0
    }

    /// Asks for a look at all accounts: what there is in partitions that are new to this worker was told to others.
    pub(super) fn ask_for_sweep(&self) {
        self.needs_sweep.store(true, Ordering::Relaxed);
    }

    pub(super) fn take_request(&self) -> bool {
        self.needs_sweep.swap(false, Ordering::Relaxed)
    }

    pub(super) fn tell(&self, found: Found) {
        // A worker that has ended needs to know nothing more.
        let _ = self.found.send(found);
    }
}

/// All workers of a process, by their numbers, and what they were told.
pub(super) struct Boards {
    pub inbox: Arc<Inbox>,
    pub all: Vec<Arc<Board>>,
}

impl Boards {
    /// The workers of this process that have the account.
    pub(super) fn holders(&self, account: AccountId) -> Which {
        let holders = self.all.iter().enumerate().filter(|(_, board)| board.holds(account));
        holders.fold(0, |which, (number, _)| which | 1 << number)
    }

    /// Whether no other process has work for the account that it had to be told of.
    pub(super) fn has_all_of(&self, account: AccountId) -> bool {
        self.all.iter().filter(|board| board.is_prompt).all(|board| board.holds(account))
    }

    pub(super) fn ask_for_sweeps(&self) {
        self.all.iter().for_each(|board| board.ask_for_sweep());
    }
}
