//! Notifies listeners in this process, after every commit, of the account whose rows may have changed.

use std::sync::{Arc, PoisonError, RwLock, Weak};

use chassis_base::AccountId;

/// Is notified of commits.
pub trait CommitListener: Send + Sync {
    /// Rows of the account may have changed. `is_logged`: there may be log entries without a position.
    fn committed(&self, account: AccountId, is_logged: bool);
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
    pub(crate) fn notify(&self, account: AccountId, is_logged: bool) -> bool {
        let listeners = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut notified = false;
        for listener in listeners.iter().filter_map(Weak::upgrade) {
            listener.committed(account, is_logged);
            notified = true;
        }
        notified
    }
}
