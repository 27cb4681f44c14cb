//! Bytes in memory: what the gateway holds of responses that are not written yet, or of requests that are not answered
//! yet. Bounded for the process, and so that neither one address nor one connection can take all of it.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use chassis_service::connections::network;
use http::{HeaderValue, header};
use proto::api::Problem;
use tokio::sync::Notify;

use super::problem::Refusal;

/// Content with fewer bytes than this is not counted: small requests and responses pass however much is in memory.
/// Their number is bounded by the requests in progress, and by the connections.
pub(super) const MIN_COUNTED: usize = 32 << 10;
/// How long to wait for bytes that other owners release.
const RESERVE_TIMEOUT: Duration = Duration::from_secs(2);
/// One address can have a quarter of the budget.
const ADDRESS_SHARE: usize = 4;
/// One connection can have a sixteenth of the budget.
const CONNECTION_SHARE: usize = 16;

/// Whose bytes they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    address: IpAddr,
    /// `None` where one connection brings the requests of many clients.
    connection: Option<SocketAddr>,
}

impl Owner {
    pub fn new(address: IpAddr, connection: Option<SocketAddr>) -> Self {
        Self { address: network(address), connection }
    }
}

/// Why bytes cannot be reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetExceeded {
    /// The owner has its full share.
    Share,
    /// All owners together have the full budget.
    Total,
}

impl From<BudgetExceeded> for Refusal {
    fn from(exceeded: BudgetExceeded) -> Self {
        match exceeded {
            BudgetExceeded::Share => {
                let detail =
                    "Too much of your data is in transit. Read the responses, then repeat the request.";
                Self::new(Problem::RateLimited, detail)
                    .with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
            }
            BudgetExceeded::Total => {
                let detail = "Too much data is in transit. Repeat the request in a moment.";
                Self::new(Problem::Unavailable, detail)
            }
        }
    }
}

/// How many bytes may be held at the same time. Cheap to clone; clones share the count.
#[derive(Clone)]
pub struct ByteBudget(Arc<Shared>);

struct Shared {
    /// The label of the metrics.
    name: &'static str,
    limit: usize,
    held: Mutex<Held>,
    freed: Notify,
}

#[derive(Default)]
struct Held {
    all: usize,
    addresses: HashMap<IpAddr, usize>,
    connections: HashMap<SocketAddr, usize>,
}

impl ByteBudget {
    pub fn new(name: &'static str, limit: usize) -> Self {
        Self(Arc::new(Shared { name, limit, held: Mutex::default(), freed: Notify::new() }))
    }

    /// Bytes that are reserved now.
    pub fn held(&self) -> usize {
        self.0.held().all
    }

    /// A reservation of nothing yet, to be grown.
    pub fn empty(&self, owner: Owner) -> Reservation {
        Reservation { budget: self.clone(), owner, bytes: 0 }
    }

    pub fn reserve(&self, owner: Owner, bytes: usize) -> Result<Reservation, BudgetExceeded> {
        let mut reserved = self.empty(owner);
        reserved.grow(bytes)?;
        Ok(reserved)
    }

    /// The same, but waits a little for bytes that are just being written.
    pub async fn reserve_or_wait(&self, owner: Owner, bytes: usize) -> Result<Reservation, BudgetExceeded> {
        let until = tokio::time::Instant::now() + RESERVE_TIMEOUT;
        loop {
            // Registered before the attempt, so that a release between the attempt and the wait is not missed.
            let freed = self.0.freed.notified();
            match self.reserve(owner, bytes) {
                Err(_) if tokio::time::timeout_at(until, freed).await.is_ok() => {}
                answer => return answer,
            }
        }
    }
}

impl Shared {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `own` is what the reservation has already. A body that is larger than a share, or than the budget, passes when
    /// it is the only one.
    fn add(&self, owner: Owner, bytes: usize, own: usize) -> Result<(), BudgetExceeded> {
        let mut held = self.held();
        let fits = |held: usize, limit: usize| held <= own || held + bytes <= limit;
        let address = held.addresses.get(&owner.address).copied().unwrap_or(0);
        let connection = owner.connection.and_then(|it| held.connections.get(&it)).copied().unwrap_or(0);
        let share_fits =
            fits(address, self.limit / ADDRESS_SHARE) && fits(connection, self.limit / CONNECTION_SHARE);
        let exceeded = match (share_fits, fits(held.all, self.limit)) {
            (true, true) => {
                held.change(owner, bytes, 0);
                self.measure(&held);
                return Ok(());
            }
            (false, _) => BudgetExceeded::Share,
            (true, false) => BudgetExceeded::Total,
        };
        let limit = if exceeded == BudgetExceeded::Share { "share" } else { "whole" };
        metrics::counter!("bytes_refused_total", "of" => self.name, "limit" => limit).increment(1);
        Err(exceeded)
    }

    fn measure(&self, held: &Held) {
        // A gauge is a floating-point number; what is beyond its precision is beyond any memory.
        let bytes = f64::from(u32::try_from(held.all).unwrap_or(u32::MAX));
        metrics::gauge!("bytes_in_flight", "of" => self.name).set(bytes);
    }
}

impl Held {
    fn change(&mut self, owner: Owner, more: usize, less: usize) {
        let new = |held: usize| (held + more).saturating_sub(less);
        self.all = (self.all + more).saturating_sub(less);
        count(&mut self.addresses, owner.address, new);
        if let Some(connection) = owner.connection {
            count(&mut self.connections, connection, new);
        }
    }
}

/// Owners that hold nothing are removed, so that the map does not grow.
fn count<K: Hash + Eq + Copy>(held: &mut HashMap<K, usize>, key: K, new: impl Fn(usize) -> usize) {
    let entry = held.entry(key).or_default();
    *entry = new(*entry);
    if *entry == 0 {
        held.remove(&key);
    }
}

/// Bytes that are counted until this is dropped.
pub struct Reservation {
    budget: ByteBudget,
    owner: Owner,
    bytes: usize,
}

impl Reservation {
    pub fn grow(&mut self, more: usize) -> Result<(), BudgetExceeded> {
        self.budget.0.add(self.owner, more, self.bytes)?;
        self.bytes += more;
        Ok(())
    }

    /// Counts these bytes instead. They are in memory already, so that this cannot fail.
    pub fn set(&mut self, bytes: usize) {
        let shared = &self.budget.0;
        let mut held = shared.held();
        held.change(self.owner, bytes, self.bytes);
        shared.measure(&held);
        drop(held);
        let freed = bytes < self.bytes;
        self.bytes = bytes;
        if freed {
            shared.freed.notify_waiters();
        }
    }

    /// The content, counted until its last part is dropped, because it was written or the client disconnected.
    pub fn attach(self, content: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        attach(content, self)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// The content; `held` is dropped with the last part of it.
pub(super) fn attach<C, H>(content: C, held: H) -> Bytes
where
    C: AsRef<[u8]> + Send + 'static,
    H: Send + 'static,
{
    Bytes::from_owner(Attached { content, _held: held })
}

struct Attached<C, H> {
    content: C,
    _held: H,
}

impl<C: AsRef<[u8]>, H> AsRef<[u8]> for Attached<C, H> {
    fn as_ref(&self) -> &[u8] {
        self.content.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(last: u8, port: u16) -> Owner {
        let address = IpAddr::from([192, 0, 2, last]);
        Owner::new(address, Some(SocketAddr::new(address, port)))
    }

    #[test]
    fn neither_a_connection_nor_an_address_takes_all_of_it() {
        let budget = ByteBudget::new("tests", 1600);
        let one = budget.reserve(owner(1, 1), 60).unwrap();
        assert_eq!(
            budget.reserve(owner(1, 1), 60).err(),
            Some(BudgetExceeded::Share),
            "a connection has 100"
        );
        let others: Vec<_> = (2..7).map(|port| budget.reserve(owner(1, port), 60).unwrap()).collect();
        assert_eq!(budget.reserve(owner(1, 9), 60).err(), Some(BudgetExceeded::Share), "an address has 400");
        let more: Vec<_> = (2..22).map(|last| budget.reserve(owner(last, 1), 60).unwrap()).collect();
        assert_eq!(budget.held(), 26 * 60);
        assert_eq!(budget.reserve(owner(30, 1), 60).err(), Some(BudgetExceeded::Total));
        drop(one);
        drop(budget.reserve(owner(30, 1), 60).unwrap());
        drop((others, more));
        assert_eq!(budget.held(), 0);
        assert!(budget.0.held().addresses.is_empty() && budget.0.held().connections.is_empty());
    }

    #[test]
    fn what_is_larger_than_a_share_passes_alone() {
        let budget = ByteBudget::new("tests", 160);
        let large = budget.reserve(owner(1, 1), 150).unwrap();
        assert_eq!(budget.reserve(owner(1, 1), 1).err(), Some(BudgetExceeded::Share));
        assert_eq!(budget.reserve(owner(2, 1), 11).err(), Some(BudgetExceeded::Total));
        let mut small = budget.reserve(owner(2, 1), 10).unwrap();
        assert!(small.grow(1).is_err());
        drop(large);
        small.grow(100).unwrap();
        small.set(20);
        assert_eq!(budget.held(), 20);
    }

    #[test]
    fn bytes_count_until_the_last_part_of_them_is_dropped() {
        let budget = ByteBudget::new("tests", 100);
        let mut bytes = budget.reserve(owner(1, 1), 3).unwrap().attach(vec![1, 2, 3]);
        let part = bytes.split_to(1);
        drop(bytes);
        assert_eq!(budget.held(), 3);
        drop(part);
        assert_eq!(budget.held(), 0);
    }

    #[tokio::test]
    async fn whoever_waits_gets_what_others_give_back() {
        let budget = ByteBudget::new("tests", 100);
        let held = budget.reserve(owner(1, 1), 100).unwrap();
        let (waited, ()) = tokio::join!(budget.reserve_or_wait(owner(2, 1), 10), async { drop(held) });
        assert!(waited.is_ok());
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one() {
        let network = |text: &str| network(text.parse().unwrap());
        assert_eq!(network("2001:db8:0:1::1"), network("2001:db8:0:1:ffff::2"));
        assert_ne!(network("2001:db8:0:1::1"), network("2001:db8:0:2::1"));
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
    }
}
