//! Keys that have to wait, each until a time.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// There are at least so many entries before those whose time has passed are removed.
const MIN_CLEANED: usize = 1024;

/// Who is added stays until the time has passed: with a capacity, new keys could push out one that has to wait.
pub(super) struct Waiting<K, T>(Mutex<Entries<K, T>>);

struct Entries<K, T> {
    until: HashMap<K, T>,
    /// The number of entries at which to remove those whose time has passed.
    clean_at: usize,
}

impl<K, T> Default for Waiting<K, T> {
    fn default() -> Self {
        Self(Mutex::new(Entries { until: HashMap::new(), clean_at: MIN_CLEANED }))
    }
}

impl<K: Hash + Eq, T: Copy + Ord> Waiting<K, T> {
    /// Until when the key has to wait, if that is after `now`.
    pub(super) fn until<Q: Hash + Eq + ?Sized>(&self, key: &Q, now: T) -> Option<T>
    where
        K: Borrow<Q>,
    {
        self.entries().until.get(key).copied().filter(|until| *until > now)
    }

    pub(super) fn add(&self, key: K, until: T, now: T) {
        let mut entries = self.entries();
        entries.until.insert(key, until);
        if entries.until.len() >= entries.clean_at {
            entries.until.retain(|_, until| *until > now);
            entries.clean_at = (entries.until.len() * 2).max(MIN_CLEANED);
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries<K, T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_waits_until_its_time_and_no_other_key_ends_that() {
        let waiting = Waiting::default();
        waiting.add(0, 1_000_000, 0);
        for (key, now) in (1..100_000).zip(0..) {
            waiting.add(key, now + 10, now);
        }
        assert_eq!(waiting.until(&0, 999_999), Some(1_000_000));
        assert_eq!(waiting.until(&0, 1_000_000), None);
        assert_eq!(waiting.until(&99_999, 100_000), Some(100_008));
        assert_eq!(waiting.until(&1, 20), None);
        assert!(waiting.entries().until.len() <= MIN_CLEANED, "those whose time has passed are removed");
    }
}
