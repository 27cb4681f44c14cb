//! Limits how much of a resource each account holds, so that no account takes all of it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::account::AccountId;

type Counts = Arc<Mutex<HashMap<AccountId, usize>>>;

/// Counts the shares of each account, up to a maximum for each.
pub struct Shares {
    max: usize,
    counts: Counts,
}

/// One share of an account, which is returned on drop.
pub struct Share {
    account: AccountId,
    counts: Counts,
}

impl Shares {
    pub fn new(max: usize) -> Self {
        Self { max, counts: Arc::default() }
    }

    /// Takes a share, unless the account has reached its maximum.
    pub fn enter(&self, account: AccountId) -> Option<Share> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(account).or_default();
        if *count >= self.max {
            return None;
        }
        *count += 1;
        Some(Share { account, counts: Arc::clone(&self.counts) })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.account) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.account);
            }
        }
    }
}

/// A fixed number of places, of which one account has some at most. Nobody waits for one.
pub struct Places {
    all: usize,
    accounts: Shares,
    taken: Arc<AtomicUsize>,
}

/// The right to one place, until it is dropped.
pub struct Place {
    taken: Arc<AtomicUsize>,
    _of_account: Share,
}

impl Places {
    pub fn new(all: usize, of_account: usize) -> Self {
        Self { all, accounts: Shares::new(of_account), taken: Arc::default() }
    }

    /// Takes a place, unless all are taken or the account has its share.
    pub fn enter(&self, account: AccountId) -> Option<Place> {
        let of_account = self.accounts.enter(account)?;
        let one_more = |taken: usize| (taken < self.all).then_some(taken + 1);
        self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok()?;
        Some(Place { taken: Arc::clone(&self.taken), _of_account: of_account })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_leaves_the_rest_to_the_others() {
        let shares = Shares::new(2);
        let [one, other] = [1, 2].map(|id| AccountId::trust(uuid::Uuid::from_u128(id)));
        let held: Vec<Share> = std::iter::from_fn(|| shares.enter(one)).collect();
        assert_eq!(held.len(), 2);
        assert!(shares.enter(other).is_some());
        drop(held);
        assert!(shares.enter(one).is_some());
        assert!(shares.counts.lock().unwrap().is_empty());
    }

    #[test]
    fn one_account_has_its_part_of_the_places_and_all_together_have_them_all() {
        let places = Places::new(4, 2);
        let [one, other, third] = [1, 2, 3].map(|id| AccountId::trust(uuid::Uuid::from_u128(id)));
        let of_one: Vec<Place> = std::iter::from_fn(|| places.enter(one)).collect();
        let of_other: Vec<Place> = std::iter::from_fn(|| places.enter(other)).collect();
        assert_eq!((of_one.len(), of_other.len()), (2, 2));
        assert!(places.enter(third).is_none());
        drop(of_one);
        assert!(places.enter(third).is_some());
    }
}
