//! PDFs in memory, by their content. The least recently used are evicted first, the account's own before those of others.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use chassis_base::AccountId;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub account: AccountId,
    /// The hash of the content.
    pub content: [u8; 32],
}

struct Entry {
    used_at: u64,
    bytes: Bytes,
}

pub(crate) struct Cache {
    /// In bytes.
    capacity: usize,
    used: usize,
    entries: HashMap<Key, Entry>,
    /// The keys by the time of their last use.
    order: BTreeMap<u64, Key>,
    clock: u64,
}

impl Cache {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, used: 0, entries: HashMap::new(), order: BTreeMap::new(), clock: 0 }
    }

    pub(crate) fn get(&mut self, key: &Key) -> Option<Bytes> {
        let entry = self.entries.get_mut(key)?;
        self.clock += 1;
        self.order.remove(&entry.used_at);
        self.order.insert(self.clock, *key);
        entry.used_at = self.clock;
        Some(entry.bytes.clone())
    }

    /// Caches a PDF. An account has at most a quarter of the capacity; a PDF larger than that is not cached.
    pub(crate) fn put(&mut self, key: Key, bytes: Bytes) {
        let share = self.capacity / 4;
        self.remove(&key);
        if bytes.len() > share {
            return;
        }
        while self.used_by(key.account) + bytes.len() > share {
            let Some(oldest) = self.order.values().find(|other| other.account == key.account).copied() else {
                break;
            };
            self.remove(&oldest);
        }
        while self.used + bytes.len() > self.capacity {
            let Some(oldest) = self.order.values().next().copied() else { break };
            self.remove(&oldest);
        }
        self.clock += 1;
        self.used += bytes.len();
        self.order.insert(self.clock, key);
        self.entries.insert(key, Entry { used_at: self.clock, bytes });
    }

    fn used_by(&self, account: AccountId) -> usize {
        let own = self.entries.iter().filter(|(key, _)| key.account == account);
        own.map(|(_, entry)| entry.bytes.len()).sum()
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.order.remove(&entry.used_at);
            self.used -= entry.bytes.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    fn key(account: u128, content: u8) -> Key {
        Key { account: AccountId::trust(Uuid::from_u128(account)), content: [content; 32] }
    }

    #[test]
    fn an_account_that_fills_its_share_loses_its_own_and_nobody_elses() {
        let mut cache = Cache::new(400);
        cache.put(key(2, 0), Bytes::from_static(&[0; 50]));
        for content in 0..10 {
            cache.put(key(1, content), Bytes::from_static(&[0; 50]));
        }
        assert!(cache.get(&key(2, 0)).is_some());
        let kept: Vec<u8> = (0..10).filter(|content| cache.get(&key(1, *content)).is_some()).collect();
        assert_eq!(kept, [8, 9]);
        cache.put(key(3, 0), Bytes::from_static(&[0; 101]));
        assert!(cache.get(&key(3, 0)).is_none(), "larger than a share");
    }

    proptest! {
        #[test]
        fn the_cache_stays_within_its_bytes(puts in proptest::collection::vec((0..8_u128, 0..6_u8, 0..150_usize), 0..100)) {
            let mut cache = Cache::new(400);
            for (account, content, size) in puts {
                cache.put(key(account, content), vec![content; size].into());
                let sizes = cache.entries.values().map(|entry| entry.bytes.len());
                prop_assert_eq!(sizes.sum::<usize>(), cache.used);
                prop_assert!(cache.used <= 400);
                prop_assert_eq!(cache.order.len(), cache.entries.len());
                prop_assert_eq!(cache.get(&key(account, content)).is_some(), size <= 100);
            }
        }
    }
}
