//! How many files are in memory at the same time: an upload always is, and a download that is sent in one message. A file of
//! its own, because both of them take from the same.

use chassis_base::AccountId;
use chassis_base::error::status;
use chassis_base::shares::{Place, Places};
use tonic::Status;

/// How many files of all accounts, each up to 16 MiB.
const MAX: usize = 32;

pub(crate) struct FileSlots(Places);

impl FileSlots {
    pub(crate) fn new() -> Self {
        Self::of(MAX)
    }

    /// One account has a quarter of them at most: an upload lasts as long as its client takes for it.
    fn of(max: usize) -> Self {
        Self(Places::new(max, max.div_ceil(4)))
    }

    /// # Errors
    /// A retryable one, when no slot is free for this account.
    pub(crate) fn enter(&self, account: AccountId) -> Result<Place, Status> {
        let detail = "Too many files are on their way. Repeat the request in a moment.";
        self.0.enter(account).ok_or_else(|| status::unavailable(detail))
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
            std::iter::from_fn(|| slots.enter(account).ok()).collect::<Vec<Place>>()
        };
        let mut of_each: Vec<Vec<Place>> = (1..=5).map(held).collect();
        assert_eq!(of_each.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 2, 2, 0]);
        of_each.remove(0);
        assert_eq!(held(5).len(), 2);
    }
}
