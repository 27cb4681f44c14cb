//! Places for requests in progress. Each service has places of its own, and all share the rest: one that hangs, and
//! whoever floods it, can take what is shared and no more. Within a service nobody takes more than twice what they leave
//! for others, so that one account, or one address, never has all of its places.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chassis::AccountId;
use http::{HeaderValue, header};
use proto::api::Problem;

use super::problem::Refusal;

/// Who makes a request, as far as places go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Party {
    Account(AccountId),
    /// Of requests without a key.
    Address(IpAddr),
}

/// The places of all services.
#[derive(Clone)]
pub struct Bulkhead(Arc<Shared>);

struct Shared {
    /// Places that each service has for itself.
    own: usize,
    /// Places for whichever service needs them.
    common: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    /// Of those that are shared.
    shared: usize,
    services: HashMap<Arc<str>, InService>,
}

#[derive(Default)]
struct InService {
    all: usize,
    parties: HashMap<Party, usize>,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The party has as many as one can have while others need some.
    Share,
    /// The service has none left.
    Full,
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Share => {
                let detail = "Too many of your requests are in progress. Repeat the request in a moment.";
                Self::new(Problem::RateLimited, detail)
                    .with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
            }
            Refused::Full => {
                let detail = "There are too many requests in progress. Repeat the request in a moment.";
                Self::new(Problem::Unavailable, detail)
            }
        }
    }
}

impl Bulkhead {
    /// Half of the places belong to the services, in equal parts and at least one each; half are shared.
    pub fn new(places: usize, services: usize) -> Self {
        let own = (places / 2 / services.max(1)).max(1);
        let common = places.saturating_sub(own * services);
        Self(Arc::new(Shared { own, common, taken: Mutex::default() }))
    }

    /// Requests in progress in a service.
    pub fn taken(&self, service: &str) -> usize {
        self.0.taken().services.get(service).map_or(0, |entered| entered.all)
    }

    /// A place in a service, held until it is dropped.
    pub fn enter(&self, service: &str, party: Party) -> Result<Place, Refused> {
        let mut taken = self.0.taken();
        let (all, mine) = taken
            .services
            .get(service)
            .map_or((0, 0), |entered| (entered.all, entered.parties.get(&party).copied().unwrap_or(0)));
        let free = self.0.own.saturating_sub(all) + (self.0.common - taken.shared);
        let refused = match free {
            0 => Some(Refused::Full),
            free if mine >= 2 * free => Some(Refused::Share),
            _ => None,
        };
        if let Some(refused) = refused {
            let why = if refused == Refused::Full { "full" } else { "share" };
            metrics::counter!("shed_total", "peer" => service.to_owned(), "limit" => why).increment(1);
            return Err(refused);
        }
        if all >= self.0.own {
            taken.shared += 1;
        }
        let known = taken.services.get_key_value(service).map(|(name, _)| Arc::clone(name));
        let name = known.unwrap_or_else(|| service.into());
        let entered = taken.services.entry(Arc::clone(&name)).or_default();
        entered.all += 1;
        *entered.parties.entry(party).or_default() += 1;
        measure(&name, entered);
        drop(taken);
        Ok(Place { bulkhead: self.clone(), service: name, party })
    }
}

impl Shared {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn measure(service: &str, entered: &InService) {
    let all = f64::from(u32::try_from(entered.all).unwrap_or(u32::MAX));
    metrics::gauge!("requests_in_flight", "peer" => service.to_owned()).set(all);
}

/// A place in a service.
pub struct Place {
    bulkhead: Bulkhead,
    service: Arc<str>,
    party: Party,
}

impl Drop for Place {
    fn drop(&mut self) {
        let shared = &self.bulkhead.0;
        let mut taken = shared.taken();
        let Some(entered) = taken.services.get_mut(&self.service) else { return };
        let was_shared = entered.all > shared.own;
        entered.all -= 1;
        if let Some(mine) = entered.parties.get_mut(&self.party) {
            *mine -= 1;
            if *mine == 0 {
                entered.parties.remove(&self.party);
            }
        }
        measure(&self.service, entered);
        if was_shared {
            taken.shared -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn party(last: u8) -> Party {
        Party::Address(IpAddr::from([192, 0, 2, last]))
    }

    #[test]
    fn a_service_that_hangs_leaves_the_others_their_places() {
        let places = Bulkhead::new(60, 6);
        let mut hung = Vec::new();
        for last in 0..100 {
            while let Ok(place) = places.enter("crm", party(last)) {
                hung.push(place);
            }
        }
        assert_eq!(hung.len(), 35, "5 of its own and 30 that are shared");
        assert_eq!(places.enter("crm", party(200)).err(), Some(Refused::Full));
        for service in ["work", "billing"] {
            let others: Vec<_> = (0..5).map(|last| places.enter(service, party(last)).unwrap()).collect();
            assert_eq!(places.enter(service, party(9)).err(), Some(Refused::Full));
            drop(others);
            drop(places.enter(service, party(9)).unwrap());
        }
        drop(hung);
        assert_eq!(places.0.taken().shared, 0);
        assert!(
            places.0.taken().services.values().all(|service| service.all == 0 && service.parties.is_empty())
        );
    }

    #[test]
    fn one_party_always_leaves_room_for_another() {
        let places = Bulkhead::new(60, 6);
        let mut greedy = Vec::new();
        let refused = loop {
            match places.enter("crm", party(1)) {
                Ok(place) => greedy.push(place),
                Err(refused) => break refused,
            }
        };
        assert_eq!((greedy.len(), refused), (24, Refused::Share), "of 35");
        let other = (0..5).map(|_| places.enter("crm", party(2))).collect::<Result<Vec<_>, _>>().unwrap();
        assert_eq!(places.enter("crm", party(1)).err(), Some(Refused::Share), "refused first");
        drop((greedy, other));
        assert!(places.enter("crm", party(1)).is_ok());
    }

    #[test]
    fn every_service_has_a_place_however_few_there_are() {
        let places = Bulkhead::new(1, 6);
        let (one, other) = (places.enter("crm", party(1)), places.enter("work", party(1)));
        assert!(one.is_ok() && other.is_ok() && places.enter("crm", party(2)).is_err());
    }
}
