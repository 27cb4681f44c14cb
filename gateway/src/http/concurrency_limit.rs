//! How many requests may be in progress in the services at the same time. Each service has permits of its own, and all
//! share the rest: a service that hangs can take its own and the shared permits, but not those of other services.
//! Within a service nobody has more than twice as many permits as are free, so that one account, or one address, never
//! has them all.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chassis_base::AccountId;
use http::{HeaderValue, header};
use metrics::Gauge;
use proto::api::Problem;

use super::problem::Refusal;

/// Who makes a request, as far as permits are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Requester {
    Account(AccountId),
    /// The client address of requests without a key.
    Address(IpAddr),
}

/// The permits of all services. Cheap to clone; clones share them.
#[derive(Clone)]
pub struct ConcurrencyLimit(Arc<Shared>);

struct Shared {
    /// Permits that each service has for itself.
    own: usize,
    /// Permits for whichever service needs them.
    common: usize,
    in_flight: Mutex<InFlight>,
}

#[derive(Default)]
struct InFlight {
    /// How many of the common permits are in use.
    common: usize,
    services: HashMap<Arc<str>, InService>,
}

struct InService {
    all: usize,
    requesters: HashMap<Requester, usize>,
    /// Kept, because to find it by its name takes longer than to count the request.
    gauge: Gauge,
}

impl InService {
    fn new(service: &str) -> Self {
        let gauge = metrics::gauge!("requests_in_flight", "peer" => service.to_owned());
        Self { all: 0, requesters: HashMap::new(), gauge }
    }

    fn measure(&self) {
        self.gauge.set(f64::from(u32::try_from(self.all).unwrap_or(u32::MAX)));
    }
}

/// Why a request gets no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitReached {
    /// The requester has its full share.
    Share,
    /// The service has no permits left.
    Service,
}

impl From<LimitReached> for Refusal {
    fn from(reached: LimitReached) -> Self {
        match reached {
            LimitReached::Share => {
                let detail = "Too many of your requests are in progress. Repeat the request in a moment.";
                Self::new(Problem::RateLimited, detail)
                    .with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
            }
            LimitReached::Service => {
                let detail = "There are too many requests in progress. Repeat the request in a moment.";
                Self::new(Problem::Unavailable, detail)
            }
        }
    }
}

impl ConcurrencyLimit {
    /// Half of the permits belong to the services, in equal parts and at least one each; half are shared.
    pub fn new(permits: usize, services: usize) -> Self {
        let own = (permits / 2 / services.max(1)).max(1);
        let common = permits.saturating_sub(own * services);
        Self(Arc::new(Shared { own, common, in_flight: Mutex::default() }))
    }

    /// Requests in progress in a service.
    pub fn in_flight(&self, service: &str) -> usize {
        self.0.in_flight().services.get(service).map_or(0, |in_service| in_service.all)
    }

    /// A permit for a request to a service, held until it is dropped. Never waits: without a free permit it refuses.
    pub fn acquire(&self, service: &str, requester: Requester) -> Result<Permit, LimitReached> {
        let mut in_flight = self.0.in_flight();
        let (all, own) = in_flight.services.get(service).map_or((0, 0), |in_service| {
            (in_service.all, in_service.requesters.get(&requester).copied().unwrap_or(0))
        });
        let free = self.0.own.saturating_sub(all) + (self.0.common - in_flight.common);
        let reached = match free {
            0 => Some(LimitReached::Service),
            free if own >= 2 * free => Some(LimitReached::Share),
            _ => None,
        };
        if let Some(reached) = reached {
            let limit = if reached == LimitReached::Service { "full" } else { "share" };
            metrics::counter!("shed_total", "peer" => service.to_owned(), "limit" => limit).increment(1);
            return Err(reached);
        }
        if all >= self.0.own {
            in_flight.common += 1;
        }
        let existing = in_flight.services.get_key_value(service).map(|(name, _)| Arc::clone(name));
        let name = existing.unwrap_or_else(|| service.into());
        let in_service =
            in_flight.services.entry(Arc::clone(&name)).or_insert_with(|| InService::new(service));
        in_service.all += 1;
        *in_service.requesters.entry(requester).or_default() += 1;
        in_service.measure();
        drop(in_flight);
        Ok(Permit { limit: self.clone(), service: name, requester })
    }
}

impl Shared {
    fn in_flight(&self) -> MutexGuard<'_, InFlight> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to have one request in progress in a service.
pub struct Permit {
    limit: ConcurrencyLimit,
    service: Arc<str>,
    requester: Requester,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let shared = &self.limit.0;
        let mut in_flight = shared.in_flight();
        let Some(in_service) = in_flight.services.get_mut(&self.service) else { return };
        // Permits are interchangeable: whichever request ends, the common ones are released first.
        let was_common = in_service.all > shared.own;
        in_service.all -= 1;
        if let Some(own) = in_service.requesters.get_mut(&self.requester) {
            *own -= 1;
            if *own == 0 {
                in_service.requesters.remove(&self.requester);
            }
        }
        in_service.measure();
        if was_common {
            in_flight.common -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requester(last: u8) -> Requester {
        Requester::Address(IpAddr::from([192, 0, 2, last]))
    }

    #[test]
    fn a_service_that_hangs_leaves_the_others_their_permits() {
        let limit = ConcurrencyLimit::new(60, 6);
        let mut hung = Vec::new();
        for last in 0..100 {
            while let Ok(permit) = limit.acquire("crm", requester(last)) {
                hung.push(permit);
            }
        }
        assert_eq!(hung.len(), 35, "5 of its own and 30 that are shared");
        assert_eq!(limit.acquire("crm", requester(200)).err(), Some(LimitReached::Service));
        for service in ["work", "billing"] {
            let others: Vec<_> =
                (0..5).map(|last| limit.acquire(service, requester(last)).unwrap()).collect();
            assert_eq!(limit.acquire(service, requester(9)).err(), Some(LimitReached::Service));
            drop(others);
            drop(limit.acquire(service, requester(9)).unwrap());
        }
        drop(hung);
        assert_eq!(limit.0.in_flight().common, 0);
        let in_flight = limit.0.in_flight();
        assert!(in_flight.services.values().all(|service| service.all == 0 && service.requesters.is_empty()));
    }

    #[test]
    fn one_requester_always_leaves_permits_for_another() {
        let limit = ConcurrencyLimit::new(60, 6);
        let mut greedy = Vec::new();
        let refused = loop {
            match limit.acquire("crm", requester(1)) {
                Ok(permit) => greedy.push(permit),
                Err(refused) => break refused,
            }
        };
        assert_eq!((greedy.len(), refused), (24, LimitReached::Share), "of 35");
        let other =
            (0..5).map(|_| limit.acquire("crm", requester(2))).collect::<Result<Vec<_>, _>>().unwrap();
        assert_eq!(limit.acquire("crm", requester(1)).err(), Some(LimitReached::Share), "refused first");
        drop((greedy, other));
        assert!(limit.acquire("crm", requester(1)).is_ok());
    }

    #[test]
    fn every_service_has_a_permit_however_few_there_are() {
        let limit = ConcurrencyLimit::new(1, 6);
        let (one, other) = (limit.acquire("crm", requester(1)), limit.acquire("work", requester(1)));
        assert!(one.is_ok() && other.is_ok() && limit.acquire("crm", requester(2)).is_err());
    }
}
