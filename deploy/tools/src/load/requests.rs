//! The requests over REST of each operation, rendered with as little work as possible.

use std::collections::hash_map::RandomState;
use std::fmt::{self, Write};
use std::hash::{BuildHasher, Hasher};
use std::ops::RangeInclusive;

use deploy_tools::http::Request;

use crate::bodies;
use crate::operations::{Action, Operation, Resource, SEARCHED};

/// How many deals a connection moves in turn.
const DEALS_OF_A_CONNECTION: usize = 50;

/// Where requests go, and what they ask for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Target {
    pub authority: String,
    pub key: String,
    /// Ids of what the account has, in the order of [`Resource::ALL`]; not empty for what is asked for.
    ids: [Vec<String>; 5],
    /// Ids of the phases that deals are moved to.
    pub phases: Vec<String>,
    /// Makes the idempotency keys of this run its own.
    run: u64,
}

impl Target {
    pub(crate) fn new(authority: &str, key: &str) -> Self {
        let (authority, key) = (authority.to_owned(), key.to_owned());
        Self { authority, key, run: random_seed(), ..Self::default() }
    }

    pub(crate) fn request<'a>(&'a self, method: &'a str, target: &'a str) -> Request<'a> {
        Request { method, target, key: Some(&self.key), ..Request::default() }
    }

    pub(crate) fn ids(&self, resource: Resource) -> &[String] {
        &self.ids[resource as usize]
    }

    pub(crate) fn ids_mut(&mut self, resource: Resource) -> &mut Vec<String> {
        &mut self.ids[resource as usize]
    }

    /// The ids of everything, by kind.
    pub(crate) fn pools(&self) -> Vec<&[String]> {
        self.ids.iter().chain([&self.phases]).map(Vec::as_slice).collect()
    }
}

/// What one connection sends.
#[derive(Clone, Debug)]
pub(crate) enum Load {
    Operation(Operation),
    /// One to fill the account with.
    Fill(Resource),
    /// The same request each time.
    Path(String),
    /// A page of a list, a random one of these.
    Pages {
        path: &'static str,
        pages: RangeInclusive<u64>,
    },
}

impl Load {
    pub(crate) fn success(&self) -> u16 {
        match self {
            Self::Operation(operation) => operation.success(),
            Self::Fill(_) => 201,
            Self::Path(_) | Self::Pages { .. } => 200,
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operation(operation) => f.write_str(operation.name),
            Self::Fill(resource) => write!(f, "a new entry of {}", resource.path()),
            Self::Path(path) => f.write_str(path),
            Self::Pages { path, pages } => write!(f, "{path}, pages {} to {}", pages.start(), pages.end()),
        }
    }
}

/// The requests of one connection, one after another, rendered into buffers that are used again.
pub(crate) struct Requests<'a> {
    target: &'a Target,
    load: Load,
    series: String,
    /// Of the next request.
    pub number: u64,
    random: Random,
    message: Vec<u8>,
    body: String,
    /// Of the last request.
    pub path: String,
    pub idempotency_key: String,
}

impl<'a> Requests<'a> {
    /// `series` tells apart the connections of a run.
    pub(crate) fn new(target: &'a Target, load: Load, series: &str) -> Self {
        Self {
            target,
            load,
            series: format!("{:016x}-{series}", target.run),
            number: 0,
            random: Random(random_seed() | 1),
            message: Vec::with_capacity(2048),
            body: String::new(),
            path: String::new(),
            idempotency_key: String::new(),
        }
    }

    pub(crate) fn next(&mut self) -> &[u8] {
        let number = self.number;
        self.number += 1;
        self.body.clear();
        self.path.clear();
        self.idempotency_key.clear();
        // Writing to a String cannot fail.
        let _ = match self.load.clone() {
            Load::Operation(operation) => self.write_operation(operation, number),
            Load::Fill(resource) => self.write_new(resource, number),
            Load::Path(path) => self.path.write_str(&path),
            Load::Pages { path, pages } => {
                let count = usize::try_from(pages.end() - pages.start() + 1).unwrap_or(1);
                write!(self.path, "{path}?page={}", pages.start() + self.random.below(count) as u64)
            }
        };
        let (method, body) = if self.body.is_empty() { ("GET", None) } else { ("POST", Some(&*self.body)) };
        if body.is_some() {
            let _ = write!(self.idempotency_key, "{}-{number}", self.series);
        }
        let idempotency_key = body.map(|_| &*self.idempotency_key);
        let request = Request { idempotency_key, body, ..self.target.request(method, &self.path) };
        self.message.clear();
        request.render(&self.target.authority, &mut self.message);
        &self.message
    }

    fn write_operation(&mut self, operation: Operation, number: u64) -> fmt::Result {
        let path = operation.resource.path();
        match operation.action {
            Action::List(25) | Action::Counted => self.path.write_str(path),
            Action::List(size) => write!(self.path, "{path}?per_page={size}"),
            Action::Open => write!(self.path, "{path}?payment_status=open"),
            Action::Search => write!(self.path, "{path}?search={SEARCHED}"),
            Action::Get => {
                let id = self.any(operation.resource);
                write!(self.path, "{path}/{id}")
            }
            Action::Create if operation.resource == Resource::Client => {
                self.path.push_str(path);
                bodies::client(&mut self.body, number, "Handel")
            }
            Action::Create => self.write_invoice(number, "draft"),
            Action::CreateFinal => self.write_invoice(number, "final"),
            Action::Move => self.write_move(number),
            // About every second request changes something.
            Action::Complete => {
                let id = self.any(Resource::Task);
                let action = if self.random.below(2) == 0 { "reopen" } else { "complete" };
                self.body.push_str("{}");
                write!(self.path, "{path}/{id}/{action}")
            }
            Action::Message => {
                let id = self.any(Resource::Ticket);
                bodies::reply(&mut self.body)?;
                write!(self.path, "{path}/{id}/messages")
            }
        }
    }

    fn write_new(&mut self, resource: Resource, number: u64) -> fmt::Result {
        self.path.push_str(resource.path());
        let person = self.any(Resource::Client);
        bodies::filled_in(&mut self.body, resource, number, person)
    }

    fn write_invoice(&mut self, number: u64, mode: &str) -> fmt::Result {
        self.path.push_str(Resource::Invoice.path());
        let person = self.any(Resource::Client);
        bodies::invoice(&mut self.body, number, person, mode)
    }

    /// Each connection goes round a few deals of its own, and takes all of them one phase further each time: so every
    /// move changes something, and connections do not wait for one another.
    fn write_move(&mut self, number: u64) -> fmt::Result {
        let deals = self.target.ids(Resource::Deal);
        let lap_length = DEALS_OF_A_CONNECTION.min(deals.len()).max(1);
        let number = usize::try_from(number).unwrap_or(0);
        let first =
            self.series.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let deal = &deals[first.wrapping_add(number % lap_length) % deals.len()];
        let phase = &self.target.phases[(number / lap_length + 1) % self.target.phases.len()];
        write!(self.body, "{{\"phase_id\":\"{phase}\"}}")?;
        write!(self.path, "{}/{deal}/move", Resource::Deal.path())
    }

    /// The id of a random one.
    fn any(&mut self, resource: Resource) -> &'a str {
        let ids = self.target.ids(resource);
        ids.get(self.random.below(ids.len())).map_or("", String::as_str)
    }
}

/// A different number in every process, from the seed that the standard library gives its hash maps.
fn random_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Xorshift: good enough to pick a row, and a few instructions.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (limit.max(1) as u64)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use serde_json::Value;

    use super::*;

    fn target() -> Target {
        let mut target = Target::new("h:1", "ba_x");
        for resource in Resource::ALL {
            *target.ids_mut(resource) = (0..100).map(|number| format!("id{number}")).collect();
        }
        target.phases = ["p0", "p1", "p2"].map(str::to_owned).into();
        target
    }

    fn load(name: &str) -> Load {
        Load::Operation(name.parse().unwrap())
    }

    #[test]
    fn every_request_with_a_body_has_its_own_key_and_json() {
        let target = target();
        let operations = Operation::ALL.into_iter().filter(|operation| operation.writes());
        let loads = operations.map(Load::Operation).chain(Resource::ALL.map(Load::Fill));
        for load in loads {
            let mut requests = Requests::new(&target, load.clone(), "0");
            let mut keys = HashSet::new();
            for _ in 0..50 {
                let message = String::from_utf8(requests.next().to_vec()).unwrap();
                let body = message.split_once("\r\n\r\n").unwrap().1;
                assert!(serde_json::from_str::<Value>(body).unwrap().is_object(), "{load}: {body}");
                assert!(keys.insert(requests.idempotency_key.clone()), "{load}");
            }
        }
    }

    #[test]
    fn a_deal_is_moved_to_another_phase_each_time() {
        let target = target();
        let mut requests = Requests::new(&target, load("deal-move"), "0");
        let mut phases = HashMap::new();
        for _ in 0..500 {
            requests.next();
            let phase = requests.body.clone();
            assert_ne!(phases.insert(requests.path.clone(), phase.clone()), Some(phase));
        }
        assert_eq!(phases.len(), 50);
    }

    #[test]
    fn ids_and_pages_are_drawn_from_all_and_nowhere_else() {
        let target = target();
        let paths = |load: Load| {
            let mut requests = Requests::new(&target, load, "0");
            (0..3000)
                .map(|_| {
                    requests.next();
                    requests.path.clone()
                })
                .collect::<HashSet<String>>()
        };
        assert_eq!(paths(load("get")).len(), 100);
        assert_eq!(paths(load("task-complete")).len(), 200, "half of them open a task again");
        let pages = paths(Load::Pages { path: "/v1/invoices", pages: 180..=220 });
        assert_eq!(pages, (180..=220).map(|page| format!("/v1/invoices?page={page}")).collect());
    }
}
