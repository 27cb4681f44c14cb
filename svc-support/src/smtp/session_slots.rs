//! The limits on the number of sessions: for all clients, and for one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

const MAX_SESSIONS: usize = 64;
/// The address is usually that of the mail server in front, so this is half of all.
const MAX_SESSIONS_PER_ADDRESS: usize = 32;

/// The number of sessions with each address.
#[derive(Debug, Default)]
pub(super) struct SessionSlots {
    by_address: Mutex<HashMap<IpAddr, usize>>,
}

/// The right to one session, until it is dropped.
pub(super) struct Slot {
    slots: Arc<SessionSlots>,
    peer: IpAddr,
}

impl SessionSlots {
    /// `None` when the limits do not allow another session.
    pub(super) fn acquire(slots: &Arc<Self>, peer: IpAddr) -> Option<Slot> {
        let mut by_address = slots.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let theirs = by_address.get(&peer).copied().unwrap_or_default();
        if by_address.values().sum::<usize>() >= MAX_SESSIONS || theirs >= MAX_SESSIONS_PER_ADDRESS {
            return None;
        }
        by_address.insert(peer, theirs + 1);
        Some(Slot { slots: Arc::clone(slots), peer })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut by_address = self.slots.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(theirs) = by_address.get_mut(&self.peer) {
            *theirs -= 1;
            if *theirs == 0 {
                by_address.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn one_address_cannot_take_every_session() {
        let slots = Arc::new(SessionSlots::default());
        let peer = |last: u8| Ipv4Addr::new(192, 0, 2, last).into();
        let acquire = |last: u8| SessionSlots::acquire(&slots, peer(last));
        let first: Vec<Slot> = (0..99).filter_map(|_| acquire(1)).collect();
        assert_eq!(first.len(), MAX_SESSIONS_PER_ADDRESS);
        let others: Vec<Slot> = (2..99).filter_map(acquire).collect();
        assert_eq!(others.len(), MAX_SESSIONS - MAX_SESSIONS_PER_ADDRESS);
        drop(first);
        assert!(acquire(1).is_some() && acquire(200).is_some());
        drop(others);
        assert!(slots.by_address.lock().unwrap().is_empty());
    }
}
