//! PDFs that are no files in memory, by what they show: the least recently used go first, the account's own before others'.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use chassis_base::AccountId;

/// What a PDF shows, as a hash, and whose it is.
pub type Key = (AccountId, [u8; 32]);

pub struct Cache {
    /// In bytes.
    capacity: usize,
    used: usize,
    entries: HashMap<Key, (u64, Bytes)>,
    /// The keys by when they were last used.
    order: BTreeMap<u64, Key>,
    clock: u64,
}

impl Cache {
    pub fn new(capacity: usize) -> Self {
        Self { capacity, used: 0, entries: HashMap::new(), order: BTreeMap::new(), clock: 0 }
    }

    pub fn get(&mut self, key: &Key) -> Option<Bytes> {
        let (used_at, bytes) = self.entries.get_mut(key)?;
        self.clock += 1;
        self.order.remove(used_at);
        self.order.insert(self.clock, *key);
        *used_at = self.clock;
        Some(bytes.clone())
    }

    /// Keeps a PDF. One account fills at most a quarter; what is larger is not kept.
    pub fn put(&mut self, key: Key, bytes: Bytes) {
        let share = self.capacity / 4;
        self.remove(&key);
        if bytes.len() > share {
            return;
        }
        while self.held_by(key.0) + bytes.len() > share {
            let Some(oldest) = self.order.values().find(|known| known.0 == key.0).copied() else { break };
            self.remove(&oldest);
        }
        while self.used + bytes.len() > self.capacity {
            let Some(oldest) = self.order.values().next().copied() else { break };
            self.remove(&oldest);
        }
        self.clock += 1;
        self.used += bytes.len();
        self.order.insert(self.clock, key);
        self.entries.insert(key, (self.clock, bytes));
    }

    fn held_by(&self, account: AccountId) -> usize {
        self.entries.iter().filter(|(key, _)| key.0 == account).map(|(_, (_, bytes))| bytes.len()).sum()
    }

    fn remove(&mut self, key: &Key) {
        if let Some((used_at, bytes)) = self.entries.remove(key) {
            self.order.remove(&used_at);
            self.used -= bytes.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    fn key(account: u128, content: u8) -> Key {
        (AccountId::trust(Uuid::from_u128(account)), [content; 32])
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
                let sizes = cache.entries.values().map(|(_, bytes)| bytes.len());
                prop_assert_eq!(sizes.sum::<usize>(), cache.used);
                prop_assert!(cache.used <= 400);
                prop_assert_eq!(cache.order.len(), cache.entries.len());
                prop_assert_eq!(cache.get(&key(account, content)).is_some(), size <= 100);
            }
        }
    }
}
