//! Collects the accounts that may have work: from every commit of this process ([`sequencer`](super::sequencer)), and
//! from those of other processes through the database ([`exchange`](super::exchange)).

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chassis_base::AccountId;
use tokio::sync::Notify;

/// A set of workers of this process, one bit each.
pub(super) type Which = u64;
pub(super) const MAX_WORKERS: usize = Which::BITS as usize;

/// Accounts that were woken and not examined yet.
#[derive(Default)]
pub(super) struct Inbox {
    /// The workers that every commit wakes.
    prompt: Which,
    woken: Mutex<HashMap<AccountId, Which>>,
    /// Accounts whose node may be unreachable. Examined separately, so that the rest does not wait for them.
    suspect: Mutex<HashMap<AccountId, Which>>,
    /// Accounts to announce to other processes.
    outgoing: Mutex<HashSet<AccountId>>,
    pub arrived: Notify,
    pub departing: Notify,
}

impl Inbox {
    pub(super) fn new(prompt: Which) -> Self {
        Self { prompt, ..Self::default() }
    }

    /// Rows of the account may have changed, and its log entries have positions.
    pub(super) fn committed(&self, account: AccountId) {
        self.wake_prompt(account);
        self.pass_on([account]);
    }

    /// Wakes the workers that are not content with looking at intervals.
    pub(super) fn wake_prompt(&self, account: AccountId) {
        self.wake(account, self.prompt);
    }

    pub(super) fn wake(&self, account: AccountId, which: Which) {
        *lock(&self.woken).entry(account).or_default() |= which;
        self.arrived.notify_one();
    }

    pub(super) fn suspect(&self, account: AccountId, which: Which) {
        *lock(&self.suspect).entry(account).or_default() |= which;
        self.arrived.notify_one();
    }

    /// Announces accounts to other processes.
    pub(super) fn pass_on(&self, accounts: impl IntoIterator<Item = AccountId>) {
        lock(&self.outgoing).extend(accounts);
        self.departing.notify_one();
    }

    pub(super) fn take_woken(&self) -> HashMap<AccountId, Which> {
        std::mem::take(&mut *lock(&self.woken))
    }

    pub(super) fn take_suspects(&self) -> HashMap<AccountId, Which> {
        std::mem::take(&mut *lock(&self.suspect))
    }

    pub(super) fn take_outgoing(&self) -> HashSet<AccountId> {
        std::mem::take(&mut *lock(&self.outgoing))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
