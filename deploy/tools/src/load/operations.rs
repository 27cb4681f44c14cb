//! What is measured: each operation's requests over REST, and the name of its script for pgbench.

use std::collections::hash_map::RandomState;
use std::fmt::Write;
use std::hash::{BuildHasher, Hasher};

use clap::ValueEnum;
use deploy_tools::http::Request;

/// Every so many-th client that is filled in carries the word that the search looks for.
const SEARCHED_EVERY: u64 = 1_500;
pub const SEARCHED: &str = "korenbloem";
const CITIES: [&str; 8] =
    ["Amsterdam", "Utrecht", "Rotterdam", "Den Haag", "Eindhoven", "Groningen", "Zwolle", "Maastricht"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Operation {
    /// A client by its id, any of the account's
    Get,
    /// The first page of 25 with the exact total
    #[value(name = "list25")]
    List25,
    /// The first page of 100 with the exact total
    #[value(name = "list100")]
    List100,
    /// A word that a handful of clients have
    Search,
    /// A new client, with idempotency key and event
    Create,
}

impl Operation {
    /// In the order of measuring: what adds data comes last, so that all rounds of the others see the same.
    pub const ALL: [Self; 5] = [Self::Get, Self::List25, Self::List100, Self::Search, Self::Create];

    /// As on the command line; also the name of its pgbench script.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List25 => "list25",
            Self::List100 => "list100",
            Self::Search => "search",
            Self::Create => "create",
        }
    }

    pub fn success(self) -> u16 {
        if self == Self::Create { 201 } else { 200 }
    }

    pub fn page_size(self) -> u32 {
        if self == Self::List100 { 100 } else { 25 }
    }

    pub fn writes(self) -> bool {
        self == Self::Create
    }
}

/// Where requests go, and what they ask for.
#[derive(Clone, Debug)]
pub struct Target {
    pub authority: String,
    pub key: String,
    /// Ids of clients; not empty when [`Operation::Get`] is measured.
    pub ids: Vec<String>,
    /// Makes the idempotency keys of this run its own.
    pub run: u64,
}

impl Target {
    pub fn new(authority: String, key: String) -> Self {
        Self { authority, key, ids: Vec::new(), run: random_seed() }
    }

    pub fn request<'a>(&'a self, method: &'a str, target: &'a str) -> Request<'a> {
        Request { method, target, key: Some(&self.key), ..Request::default() }
    }
}

/// The requests of one connection, one after another, rendered into buffers that are used again.
pub struct Requests<'a> {
    target: &'a Target,
    operation: Operation,
    series: String,
    number: u64,
    random: Random,
    message: Vec<u8>,
    path: String,
    body: String,
    idempotency_key: String,
}

impl<'a> Requests<'a> {
    /// `series` tells apart the connections of a run.
    pub fn new(target: &'a Target, operation: Operation, series: &str) -> Self {
        let mut requests = Self {
            target,
            operation,
            series: format!("{:016x}-{series}", target.run),
            number: 0,
            random: Random(random_seed() | 1),
            message: Vec::with_capacity(2048),
            path: String::new(),
            body: String::new(),
            idempotency_key: String::new(),
        };
        requests.render_constant();
        requests
    }

    /// What stays the same is rendered once.
    fn render_constant(&mut self) {
        let path = match self.operation {
            Operation::List25 => "/v1/clients".to_owned(),
            Operation::List100 => "/v1/clients?per_page=100".to_owned(),
            Operation::Search => format!("/v1/clients?search={SEARCHED}"),
            Operation::Get | Operation::Create => return,
        };
        self.target.request("GET", &path).render(&self.target.authority, &mut self.message);
    }

    pub fn next(&mut self) -> &[u8] {
        match self.operation {
            Operation::List25 | Operation::List100 | Operation::Search => {}
            Operation::Get => {
                let id = &self.target.ids[self.random.below(self.target.ids.len())];
                self.path.clear();
                self.path.push_str("/v1/clients/");
                self.path.push_str(id);
                self.message.clear();
                self.target.request("GET", &self.path).render(&self.target.authority, &mut self.message);
            }
            Operation::Create => {
                let number = self.number;
                self.number += 1;
                return self.create(number, false);
            }
        }
        &self.message
    }

    /// A new client. The `filled` ones are what the reads find; those that are made while measuring never match the
    /// search.
    pub fn create(&mut self, number: u64, filled: bool) -> &[u8] {
        self.idempotency_key.clear();
        // Writing to a String cannot fail.
        let _ = write!(self.idempotency_key, "{}-{number}", self.series);
        self.body.clear();
        let word = if filled && number.is_multiple_of(SEARCHED_EVERY) { SEARCHED } else { "Handel" };
        let city = CITIES[usize::try_from(number % 8).unwrap_or(0)];
        let _ = write!(
            self.body,
            "{{\"type\":\"company\",\"company_name\":\"{word} {number:06} B.V.\",\"firstname\":\"Sanne\",\
             \"lastname\":\"de Vries\",\"email\":\"info{number}@example.com\",\"phone\":\"+31 20 123 4567\",\
             \"address\":\"Prinsengracht {number}\",\"zipcode\":\"1015 DV\",\"city\":\"{city}\",\"country\":\"NL\",\
             \"payment_term\":14}}"
        );
        self.message.clear();
        let request = Request {
            idempotency_key: Some(&self.idempotency_key),
            body: Some(&self.body),
            ..self.target.request("POST", "/v1/clients")
        };
        request.render(&self.target.authority, &mut self.message);
        &self.message
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
    use super::*;

    fn text(message: &[u8]) -> String {
        String::from_utf8(message.to_vec()).unwrap()
    }

    #[test]
    fn each_create_has_its_own_key_and_a_body_that_is_json() {
        let target = Target::new("h:1".into(), "ba_x".into());
        let mut requests = Requests::new(&target, Operation::Create, "0");
        let (first, second) = (text(requests.next()), text(requests.next()));
        let key = |message: &str| {
            message.lines().find(|line| line.starts_with("idempotency-key")).unwrap().to_owned()
        };
        assert_ne!(key(&first), key(&second));
        let body: serde_json::Value = serde_json::from_str(first.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(body["type"], "company");
        assert!(!first.contains(SEARCHED), "what is made while measuring does not change the search");
    }

    #[test]
    fn a_handful_of_ten_thousand_filled_clients_match_the_search() {
        let target = Target::new("h:1".into(), "ba_x".into());
        let mut requests = Requests::new(&target, Operation::Create, "fill");
        let matching =
            (0..10_000).filter(|number| text(requests.create(*number, true)).contains(SEARCHED)).count();
        assert!((3..=10).contains(&matching), "{matching}");
    }

    #[test]
    fn gets_ask_for_many_different_clients() {
        let mut target = Target::new("h:1".into(), "ba_x".into());
        target.ids = (0..100).map(|number| format!("id{number}")).collect();
        let mut requests = Requests::new(&target, Operation::Get, "0");
        let asked: std::collections::HashSet<String> = (0..1000).map(|_| text(requests.next())).collect();
        assert!(asked.len() > 90, "{}", asked.len());
    }
}
