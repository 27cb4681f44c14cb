//! Which accounts may have work: told after every commit to the workers of this process, and by way of the database to
//! those of others ([`exchange`](super::exchange)).

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use tokio::sync::Notify;

use super::exchange;
use crate::account::AccountId;
use crate::db::Db;
use crate::service::chain;

/// Workers of a process, a bit for each.
pub(super) type Which = u64;
pub(super) const ALL: Which = Which::MAX;
pub(super) const MAX_WORKERS: usize = Which::BITS as usize;

/// What the running workers of a process have been told. Usually one [`Workers`](super::Workers) listens.
#[derive(Default)]
pub(crate) struct Wake(RwLock<Vec<Weak<Inbox>>>);

impl Wake {
    pub(super) fn listen(&self) -> Arc<Inbox> {
        let inbox = Arc::new(Inbox::default());
        let mut inboxes = self.0.write().unwrap_or_else(PoisonError::into_inner);
        inboxes.retain(|inbox| inbox.strong_count() > 0);
        inboxes.push(Arc::downgrade(&inbox));
        inbox
    }

    /// Whether anybody was there to be told.
    fn tell(&self, account: AccountId) -> bool {
        let inboxes = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut told = false;
        for inbox in inboxes.iter().filter_map(Weak::upgrade) {
            inbox.wake(account, ALL);
            inbox.pass_on(account);
            told = true;
        }
        told
    }
}

impl Db {
    /// Has the workers of all processes look at an account whose rows may have changed. One that is not told, as when
    /// the process ends just now, is found by the next sweep.
    pub(crate) async fn wake_workers(&self, account: AccountId) {
        if account.uuid().is_nil() || self.wake.tell(account) {
            return;
        }
        // A command, or a service without background work of its own.
        if let Err(error) = Box::pin(exchange::post_once(self, account)).await {
            tracing::warn!(%account, error = chain(&error), "other processes were not told of new work");
        }
    }
}

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

impl Inbox {
    pub fn wake(&self, account: AccountId, which: Which) {
        *lock(&self.woken).entry(account).or_default() |= which;
        self.arrived.notify_one();
    }

    pub fn suspect(&self, account: AccountId, which: Which) {
        *lock(&self.suspect).entry(account).or_default() |= which;
    }

    fn pass_on(&self, account: AccountId) {
        lock(&self.outgoing).insert(account);
        self.departing.notify_one();
    }

    pub fn take_woken(&self) -> HashMap<AccountId, Which> {
        std::mem::take(&mut *lock(&self.woken))
    }

    pub fn take_suspects(&self) -> HashMap<AccountId, Which> {
        std::mem::take(&mut *lock(&self.suspect))
    }

    pub fn take_outgoing(&self) -> HashSet<AccountId> {
        std::mem::take(&mut *lock(&self.outgoing))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
