//! The limit on the memory of mails that are coming in: one for all of them, and half of it for one account and for one
//! peer address, so that no single one can take all of it. Memory is reserved as bytes arrive and released when the
//! mail has been processed. Independent of the content of mail.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chassis_base::AccountId;
use tokio::sync::Notify;

/// Who a reservation counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    Account(AccountId),
    Address(IpAddr),
}

#[derive(Debug)]
pub struct MailMemory {
    max: usize,
    used: Mutex<Used>,
    released: Notify,
}

#[derive(Debug, Default)]
struct Used {
    total: usize,
    by_holder: HashMap<Holder, usize>,
}

impl MailMemory {
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, used: Mutex::default(), released: Notify::new() })
    }

    /// The bytes that one holder can reserve.
    pub fn max_share(&self) -> usize {
        self.max / 2
    }

    /// An empty reservation for these holders. It counts in full for each of them.
    pub fn reservation(self: &Arc<Self>, holders: impl IntoIterator<Item = Holder>) -> Reservation {
        let mut unique: Vec<Holder> = Vec::new();
        for holder in holders {
            if !unique.contains(&holder) {
                unique.push(holder);
            }
        }
        Reservation { memory: Arc::clone(self), holders: unique, bytes: 0 }
    }

    /// Returns whether the bytes were reserved.
    fn reserve(&self, holders: &[Holder], bytes: usize) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let share = |holder| used.by_holder.get(holder).copied().unwrap_or_default();
        let fits = used.total + bytes <= self.max
            && holders.iter().all(|holder| share(holder) + bytes <= self.max_share());
        if fits {
            used.total += bytes;
            for holder in holders {
                *used.by_holder.entry(*holder).or_default() += bytes;
            }
            metrics::gauge!("mail_memory_bytes").set(u32::try_from(used.total).unwrap_or(u32::MAX));
        }
        fits
    }

    fn release(&self, holders: &[Holder], bytes: usize) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.total = used.total.saturating_sub(bytes);
        for holder in holders {
            if let Some(share) = used.by_holder.get_mut(holder) {
                *share = share.saturating_sub(bytes);
                if *share == 0 {
                    used.by_holder.remove(holder);
                }
            }
        }
        metrics::gauge!("mail_memory_bytes").set(u32::try_from(used.total).unwrap_or(u32::MAX));
        drop(used);
        self.released.notify_waiters();
    }
}

/// Memory that is reserved for one mail, until this is dropped.
#[derive(Debug)]
pub struct Reservation {
    memory: Arc<MailMemory>,
    holders: Vec<Holder>,
    bytes: usize,
}

impl Reservation {
    /// Grows the reservation to this size. Returns false, and changes nothing, when the limit does not allow it.
    #[must_use]
    pub fn grow_to(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let fits = more == 0 || self.memory.reserve(&self.holders, more);
        if fits {
            self.bytes = self.bytes.max(bytes);
        }
        fits
    }

    /// The same, but waits for memory that others release. Only for an empty reservation: two reservations that hold
    /// memory and wait for more could wait for each other.
    #[must_use]
    pub async fn wait_to_grow(&mut self, bytes: usize, timeout: Duration) -> bool {
        let memory = Arc::clone(&self.memory);
        let growing = async {
            loop {
                let released = memory.released.notified();
                tokio::pin!(released);
                // Registered before the attempt, so that a release between the attempt and the wait is not missed.
                released.as_mut().enable();
                if self.grow_to(bytes) {
                    return;
                }
                released.await;
            }
        };
        tokio::time::timeout(timeout, growing).await.is_ok()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Releases the bytes above this size.
    pub fn shrink_to(&mut self, bytes: usize) {
        let less = self.bytes.saturating_sub(bytes);
        if less > 0 {
            self.memory.release(&self.holders, less);
            self.bytes = bytes;
        }
    }
}

impl Drop for Reservation {
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
    fn one_holder_can_reserve_half_and_all_together_the_limit() {
        let memory = MailMemory::new(100);
        let mut one = memory.reservation([address(1), address(1)]);
        assert!(one.grow_to(30) && one.grow_to(50) && !one.grow_to(51));
        let mut same = memory.reservation([address(1), address(2)]);
        assert!(!same.grow_to(1), "another mail from the same address");
        let (mut two, mut three) = (memory.reservation([address(2)]), memory.reservation([address(3)]));
        assert!(two.grow_to(40) && three.grow_to(10) && !three.grow_to(11));
        drop(one);
        assert!(three.grow_to(50) && same.grow_to(10));
        three.shrink_to(5);
        drop((two, same));
        let used = memory.used.lock().unwrap();
        assert_eq!((used.total, used.by_holder.len()), (5, 1));
    }

    #[tokio::test]
    async fn a_waiting_reservation_gets_released_memory() {
        let memory = MailMemory::new(100);
        let mut one = memory.reservation([address(1)]);
        assert!(one.grow_to(50));
        let mut waiting = memory.reservation([address(1)]);
        assert!(!waiting.wait_to_grow(20, Duration::ZERO).await);
        let waits = tokio::spawn(async move { waiting.wait_to_grow(20, Duration::from_mins(1)).await });
        tokio::task::yield_now().await;
        drop(one);
        assert!(waits.await.unwrap());
    }
}
