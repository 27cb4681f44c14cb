//! Who is told of the accounts whose rows may have changed, after every commit of this process.

use std::sync::{Arc, PoisonError, RwLock, Weak};

use chassis_base::AccountId;

/// Whoever wants to know of commits.
pub trait CommitListener: Send + Sync {
    /// Rows of the account may have changed.
    fn committed(&self, account: AccountId);
}

/// The listeners of a process. Usually there is one, its workers.
#[derive(Default)]
pub struct Wake(RwLock<Vec<Weak<dyn CommitListener>>>);

impl Wake {
    /// Tells `listener` of commits until it is dropped.
    pub fn add<L: CommitListener + 'static>(&self, listener: &Arc<L>) {
        let mut listeners = self.0.write().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.strong_count() > 0);
        let listener: Weak<L> = Arc::downgrade(listener);
        listeners.push(listener);
    }

    /// Whether anybody was there to be told.
    pub(crate) fn tell(&self, account: AccountId) -> bool {
        let listeners = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut told = false;
        for listener in listeners.iter().filter_map(Weak::upgrade) {
            listener.committed(account);
            told = true;
        }
        told
    }
}
