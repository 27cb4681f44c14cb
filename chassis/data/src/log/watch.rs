//! Who waits in this process for new entries of an account's log; see [`watcher`](super::watcher).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use chassis_base::AccountId;
use tokio::sync::watch;

/// Who waits for entries in this process.
#[derive(Default)]
pub(crate) struct Watch(Mutex<Waiting>);

#[derive(Default)]
pub(super) struct Waiting {
    /// The last known position of each account that somebody waits for.
    pub accounts: HashMap<AccountId, watch::Sender<i64>>,
    pub is_polling: bool,
    pub is_stopped: bool,
}

impl Watch {
    /// Ends all waiting, now and later: the process is about to stop.
    pub(crate) fn stop(&self) {
        self.with(|waiting| {
            waiting.is_stopped = true;
            waiting.accounts.clear();
        });
    }

    /// Notifies those who wait for entries of this account.
    pub(super) fn numbered(&self, account: AccountId, position: i64) {
        self.with(|waiting| {
            if let Some(known) = waiting.accounts.get(&account) {
                set(known, position);
            }
        });
    }

    pub(super) fn with<T>(&self, use_it: impl FnOnce(&mut Waiting) -> T) -> T {
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A position may also go back, when the database was restored or another one has taken its place.
fn set(known: &watch::Sender<i64>, position: i64) {
    known.send_if_modified(|last| std::mem::replace(last, position) != position);
}
