//! The memory that mails take while they come in: so many bytes in all, and half of them for one account and for one
//! address that mail comes from, so that nobody keeps the others out. Taken as bytes arrive, given back when the mail is
//! dealt with. Knows nothing of mail.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chassis::AccountId;
use tokio::sync::Notify;

/// Who holds memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    Account(AccountId),
    Address(IpAddr),
}

#[derive(Debug)]
pub struct Memory {
    max: usize,
    used: Mutex<Used>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Used {
    total: usize,
    by_holder: HashMap<Holder, usize>,
}

impl Memory {
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, used: Mutex::default(), freed: Notify::new() })
    }

    /// What one holder can have at most.
    pub fn share(&self) -> usize {
        self.max / 2
    }

    /// Nothing yet, for these holders: each of them pays for all of it.
    pub fn hold(self: &Arc<Self>, holders: impl IntoIterator<Item = Holder>) -> Hold {
        let mut unique: Vec<Holder> = Vec::new();
        for holder in holders {
            if !unique.contains(&holder) {
                unique.push(holder);
            }
        }
        Hold { memory: Arc::clone(self), holders: unique, bytes: 0 }
    }

    fn take(&self, holders: &[Holder], bytes: usize) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let theirs = |holder| used.by_holder.get(holder).copied().unwrap_or_default();
        let fits = used.total + bytes <= self.max
            && holders.iter().all(|holder| theirs(holder) + bytes <= self.share());
        if fits {
            used.total += bytes;
            for holder in holders {
                *used.by_holder.entry(*holder).or_default() += bytes;
            }
            metrics::gauge!("mail_memory_bytes").set(u32::try_from(used.total).unwrap_or(u32::MAX));
        }
        fits
    }

    fn give_back(&self, holders: &[Holder], bytes: usize) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.total = used.total.saturating_sub(bytes);
        for holder in holders {
            if let Some(theirs) = used.by_holder.get_mut(holder) {
                *theirs = theirs.saturating_sub(bytes);
                if *theirs == 0 {
                    used.by_holder.remove(holder);
                }
            }
        }
        metrics::gauge!("mail_memory_bytes").set(u32::try_from(used.total).unwrap_or(u32::MAX));
        drop(used);
        self.freed.notify_waiters();
    }
}

/// Memory that is held for one mail, until this is dropped.
#[derive(Debug)]
pub struct Hold {
    memory: Arc<Memory>,
    holders: Vec<Holder>,
    bytes: usize,
}

impl Hold {
    /// Holds so much, if there is so much; otherwise as much as before.
    #[must_use]
    pub fn grow_to(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let fits = more == 0 || self.memory.take(&self.holders, more);
        if fits {
            self.bytes = self.bytes.max(bytes);
        }
        fits
    }

    /// The same, after a while if need be. To be used before anything is held: those who hold something and wait for
    /// more would wait for each other.
    #[must_use]
    pub async fn wait_for(&mut self, bytes: usize, patience: Duration) -> bool {
        let memory = Arc::clone(&self.memory);
        let growing = async {
            loop {
                let freed = memory.freed.notified();
                tokio::pin!(freed);
                // Before the look, so that what is given back in between is not missed.
                freed.as_mut().enable();
                if self.grow_to(bytes) {
                    return;
                }
                freed.await;
            }
        };
        tokio::time::timeout(patience, growing).await.is_ok()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives back what is above this.
    pub fn shrink_to(&mut self, bytes: usize) {
        let less = self.bytes.saturating_sub(bytes);
        if less > 0 {
            self.memory.give_back(&self.holders, less);
            self.bytes = bytes;
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(last: u8) -> Holder {
        Holder::Address(Ipv4Addr::new(192, 0, 2, last).into())
    }

    #[test]
    fn nobody_has_more_than_half_and_all_together_not_more_than_all() {
        let memory = Memory::new(100);
        let mut one = memory.hold([address(1), address(1)]);
        assert!(one.grow_to(30) && one.grow_to(50) && !one.grow_to(51));
        let mut same = memory.hold([address(1), address(2)]);
        assert!(!same.grow_to(1), "another mail from the same address");
        let (mut two, mut three) = (memory.hold([address(2)]), memory.hold([address(3)]));
        assert!(two.grow_to(40) && three.grow_to(10) && !three.grow_to(11));
        drop(one);
        assert!(three.grow_to(50) && same.grow_to(10));
        three.shrink_to(5);
        drop((two, same));
        let used = memory.used.lock().unwrap();
        assert_eq!((used.total, used.by_holder.len()), (5, 1));
    }

    #[tokio::test]
    async fn who_waits_gets_what_is_given_back() {
        let memory = Memory::new(100);
        let mut one = memory.hold([address(1)]);
        assert!(one.grow_to(50));
        let mut waiting = memory.hold([address(1)]);
        assert!(!waiting.wait_for(20, Duration::ZERO).await);
        let waits = tokio::spawn(async move { waiting.wait_for(20, Duration::from_mins(1)).await });
        tokio::task::yield_now().await;
        drop(one);
        assert!(waits.await.unwrap());
    }
}
