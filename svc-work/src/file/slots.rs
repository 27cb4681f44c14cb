//! How many files are in memory at the same time: an upload always is, and a download that is sent in one message. A file of
//! its own, because both of them take from the same.

use std::sync::Arc;

use chassis_base::AccountId;
use chassis_base::error::status;
use chassis_base::shares::{Share, Shares};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

/// How many files of all accounts, each up to 16 MiB.
const MAX: usize = 32;

/// The right to have one file in memory, until it is dropped.
pub(crate) struct FileSlot {
    _of_all: OwnedSemaphorePermit,
    _of_account: Share,
}

pub(crate) struct FileSlots {
    all: Arc<Semaphore>,
    accounts: Shares,
}

impl FileSlots {
    pub(crate) fn new() -> Self {
        Self::of(MAX)
    }

    /// One account has a quarter of them at most: an upload lasts as long as its client takes for it.
    fn of(max: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(max)), accounts: Shares::new(max.div_ceil(4)) }
    }

    /// # Errors
    /// A retryable one, when no slot is free for this account.
    pub(crate) fn enter(&self, account: AccountId) -> Result<FileSlot, Status> {
        let detail = "Too many files are on their way. Repeat the request in a moment.";
        self.find(account).ok_or_else(|| status::unavailable(detail))
    }

    fn find(&self, account: AccountId) -> Option<FileSlot> {
        let of_account = self.accounts.enter(account)?;
        let of_all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(FileSlot { _of_all: of_all, _of_account: of_account })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_a_quarter_of_the_slots_and_all_together_have_them_all() {
        let slots = FileSlots::of(8);
        let held = |id| {
            let account = AccountId::trust(uuid::Uuid::from_u128(id));
            std::iter::from_fn(|| slots.find(account)).collect::<Vec<FileSlot>>()
        };
        let mut of_each: Vec<Vec<FileSlot>> = (1..=5).map(held).collect();
        assert_eq!(of_each.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 2, 2, 0]);
        of_each.remove(0);
        assert_eq!(held(5).len(), 2);
    }
}
