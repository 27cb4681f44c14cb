//! The limits on the connections of a port, in all and per network, and which connection is closed at the limit.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::activity::Activity;

/// Idle connections are closed in batches, one in this many and at most this many: a scan of all connections for each
/// new one would itself be a load.
const EVICTION_BATCH: usize = 32;

/// The network of an address: a client with one IPv6 address usually has the whole /64.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// The connections of a port.
pub(super) struct Permits {
    max: usize,
    /// The limit per network; `None` where all connections may come from one.
    max_from_one: Option<usize>,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    count: usize,
    next: u64,
    networks: HashMap<IpAddr, HashMap<u64, Arc<Activity>>>,
}

/// Why there is no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    InAll,
    FromOne,
}

impl Full {
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::InAll => "all",
            Self::FromOne => "address",
        }
    }
}

/// Held by a connection while it is open.
pub(super) struct Permit {
    permits: Arc<Permits>,
    network: IpAddr,
    id: u64,
    pub activity: Arc<Activity>,
}

impl Permits {
    pub(super) fn new(max: usize, max_from_one: Option<usize>) -> Arc<Self> {
        Arc::new(Self { max, max_from_one, open: Mutex::default() })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn count(&self) -> usize {
        self.open().count
    }

    /// A permit for a connection from this address. Idle connections are closed when there is no free permit.
    pub(super) fn take(self: &Arc<Self>, from: IpAddr) -> Result<Permit, Full> {
        let network = network(from);
        let mut open = self.open();
        let of_network = open.networks.get(&network).map_or(0, HashMap::len);
        if self.max_from_one.is_some_and(|max| of_network >= max) && !open.make_room(Some(network)) {
            return Err(Full::FromOne);
        }
        if open.count >= self.max && !open.make_room(None) {
            return Err(Full::InAll);
        }
        let activity = Activity::new();
        let id = open.next;
        open.next += 1;
        open.count += 1;
        open.networks.entry(network).or_default().insert(id, Arc::clone(&activity));
        drop(open);
        Ok(Permit { permits: Arc::clone(self), network, id, activity })
    }
}

impl Open {
    /// Closes the connections that have been idle longest, of one network or of all. `false` when none is idle.
    fn make_room(&mut self, of: Option<IpAddr>) -> bool {
        // Lock order: the permits of the port first, then the state of a connection. Nothing locks them in reverse.
        let mut idle: Vec<_> = self
            .networks
            .iter()
            .filter(|(network, _)| of.is_none_or(|of| of == **network))
            .flat_map(|(network, all)| all.iter().map(|(id, activity)| (*network, *id, activity)))
            .filter_map(|(network, id, activity)| Some((activity.idle()?, network, id)))
            .collect();
        let last = (1 + idle.len() / EVICTION_BATCH).min(EVICTION_BATCH).min(idle.len());
        if last < idle.len() {
            idle.select_nth_unstable_by_key(last, |(idle, ..)| *idle);
        }
        for (_, network, id) in idle.iter().take(last) {
            if let Some(activity) = self.remove(*network, *id) {
                activity.evict();
            }
        }
        last > 0
    }

    fn remove(&mut self, network: IpAddr, id: u64) -> Option<Arc<Activity>> {
        let all = self.networks.get_mut(&network)?;
        let removed = all.remove(&id)?;
        if all.is_empty() {
            self.networks.remove(&network);
        }
        self.count -= 1;
        Some(removed)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        // A connection that was closed to make room has already been removed; then this finds nothing.
        self.permits.open().remove(self.network, self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::super::activity::InProgress;
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[tokio::test]
    async fn a_silent_connection_makes_room_before_one_that_was_used_and_a_busy_one_never() {
        let permits = Permits::new(3, None);
        let (used, silent, busy) = (
            permits.take(address(1)).unwrap(),
            permits.take(address(2)).unwrap(),
            permits.take(address(3)).unwrap(),
        );
        drop(InProgress::begin(&used.activity, true));
        let request = InProgress::begin(&busy.activity, true);
        let another = permits.take(address(4)).unwrap();
        let _second = InProgress::begin(&another.activity, true);
        drop(silent);
        assert_eq!(permits.count(), 3, "the silent connection has released its permit already");
        let last = permits.take(address(5)).unwrap();
        let _third = InProgress::begin(&last.activity, true);
        assert_eq!(permits.take(address(6)).err(), Some(Full::InAll));
        drop((busy, request));
        assert!(permits.take(address(6)).is_ok());
    }

    #[tokio::test]
    async fn a_network_has_its_own_bound() {
        let permits = Permits::new(100, Some(2));
        let held: Vec<Permit> = ["2001:db8::1", "2001:db8::2"]
            .into_iter()
            .map(|from| permits.take(from.parse().unwrap()).unwrap())
            .collect();
        let requests: Vec<_> = held.iter().map(|permit| InProgress::begin(&permit.activity, false)).collect();
        assert_eq!(permits.take("2001:db8::3".parse().unwrap()).err(), Some(Full::FromOne));
        assert!(permits.take("2001:db8:0:1::1".parse().unwrap()).is_ok());
        drop(requests);
        assert!(permits.take("2001:db8::3".parse().unwrap()).is_ok());
    }
}
