//! Notifies listeners in this process, after every commit, of the account whose rows may have changed.

use std::sync::{Arc, PoisonError, RwLock, Weak};

use chassis_base::AccountId;

/// What a transaction has committed, besides rows that may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logged {
    Nothing,
    /// Log entries, which have no position yet.
    Entries,
    /// Log entries, to which the [amendment](crate::Db::amend) of the same call is about to add.
    EntriesBeforeAmendment,
}

/// Is notified of commits.
pub trait CommitListener: Send + Sync {
    /// Rows of the account may have changed.
    fn committed(&self, account: AccountId, logged: Logged);
}

/// The commit listeners of a process. Usually there is one: its workers.
#[derive(Default)]
pub struct Wake(RwLock<Vec<Weak<dyn CommitListener>>>);

impl Wake {
    /// Notifies `listener` of commits until it is dropped.
    pub fn add<L: CommitListener + 'static>(&self, listener: &Arc<L>) {
        let mut listeners = self.0.write().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.strong_count() > 0);
        let listener: Weak<L> = Arc::downgrade(listener);
        listeners.push(listener);
    }

    /// Notifies all listeners; returns whether there was any.
    pub(crate) fn notify(&self, account: AccountId, logged: Logged) -> bool {
        let listeners = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut notified = false;
        for listener in listeners.iter().filter_map(Weak::upgrade) {
            listener.committed(account, logged);
            notified = true;
        }
        notified
    }
}
