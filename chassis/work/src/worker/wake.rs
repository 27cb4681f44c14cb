//! Which accounts may have work: told after every commit of this process, and of others by way of the database
//! ([`exchange`](super::exchange)).

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chassis_base::AccountId;
use chassis_data::wake::CommitListener;
use tokio::sync::Notify;

/// Workers of a process, a bit for each.
pub(super) type Which = u64;
pub(super) const ALL: Which = Which::MAX;
pub(super) const MAX_WORKERS: usize = Which::BITS as usize;

/// What was told and not yet looked at.
#[derive(Default)]
pub(super) struct Inbox {
    woken: Mutex<HashMap<AccountId, Which>>,
    /// The same for accounts that are on a node that does not answer, perhaps: not to be waited for.
    suspect: Mutex<HashMap<AccountId, Which>>,
    /// What other processes are to be told.
    outgoing: Mutex<HashSet<AccountId>>,
    pub arrived: Notify,
    pub departing: Notify,
}

impl CommitListener for Inbox {
    fn committed(&self, account: AccountId) {
        self.wake(account, ALL);
        self.pass_on(account);
    }
}

impl Inbox {
    pub(super) fn wake(&self, account: AccountId, which: Which) {
        *lock(&self.woken).entry(account).or_default() |= which;
        self.arrived.notify_one();
    }

    pub(super) fn suspect(&self, account: AccountId, which: Which) {
        *lock(&self.suspect).entry(account).or_default() |= which;
    }

    fn pass_on(&self, account: AccountId) {
        lock(&self.outgoing).insert(account);
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
