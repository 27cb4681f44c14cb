//! Limits how much of a resource each account holds, so that no account takes all of it.

use std::collections::HashMap;
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
}
