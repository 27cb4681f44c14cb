//! The requests over REST of each operation, rendered with as little work as possible.

use std::collections::hash_map::RandomState;
use std::fmt::Write;
use std::hash::{BuildHasher, Hasher};
use std::ops::RangeInclusive;

use deploy_tools::http::Request;

use crate::operations::{Action, Operation, Resource, SEARCHED, SEARCHED_EVERY};
use crate::tickets::REPLY;

const CITIES: [&str; 8] =
    ["Amsterdam", "Utrecht", "Rotterdam", "Den Haag", "Eindhoven", "Groningen", "Zwolle", "Maastricht"];

/// How many deals a connection moves in turn.
const DEALS_OF_A_CONNECTION: u64 = 50;

/// Where requests go, and what they ask for.
#[derive(Clone, Debug, Default)]
pub struct Target {
    pub authority: String,
    pub key: String,
    /// Ids of clients; not empty when one is asked for, or an invoice made.
    pub clients: Vec<String>,
    /// Ids of invoices; not empty when one is asked for.
    pub invoices: Vec<String>,
    /// Ids of deals, and of the phases that they are moved to; not empty when one is moved.
    pub deals: Vec<String>,
    pub phases: Vec<String>,
    /// Ids of tasks; not empty when one is completed.
    pub tasks: Vec<String>,
    /// Ids of tickets; not empty when one is answered.
    pub tickets: Vec<String>,
    /// Makes the idempotency keys of this run its own.
    pub run: u64,
}

impl Target {
    pub fn new(authority: String, key: String) -> Self {
        Self { authority, key, run: random_seed(), ..Self::default() }
    }

    pub fn request<'a>(&'a self, method: &'a str, target: &'a str) -> Request<'a> {
        Request { method, target, key: Some(&self.key), ..Request::default() }
    }

    fn ids(&self, resource: Resource) -> &[String] {
        match resource {
            Resource::Client => &self.clients,
            Resource::Invoice => &self.invoices,
            Resource::Deal => &self.deals,
            Resource::Task => &self.tasks,
            Resource::Ticket => &self.tickets,
        }
    }
}

/// What one connection sends.
#[derive(Clone, Debug)]
pub enum Load {
    Operation(Operation),
    /// The same request each time.
    Path(String),
    /// A page of a list, a random one of these.
    Pages {
        path: &'static str,
        pages: RangeInclusive<u64>,
    },
}

impl Load {
    pub fn success(&self) -> u16 {
        match self {
            Self::Operation(operation) => operation.success(),
            Self::Path(_) | Self::Pages { .. } => 200,
        }
    }
}

impl std::fmt::Display for Load {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Operation(operation) => f.write_str(operation.name),
            Self::Path(path) => f.write_str(path),
            Self::Pages { path, pages } => write!(f, "{path}, pages {} to {}", pages.start(), pages.end()),
        }
    }
}

/// The requests of one connection, one after another, rendered into buffers that are used again.
pub struct Requests<'a> {
    target: &'a Target,
    load: Load,
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
    pub fn new(target: &'a Target, load: Load, series: &str) -> Self {
        let mut requests = Self {
            target,
            load,
            series: format!("{:016x}-{series}", target.run),
            number: 0,
            random: Random(random_seed() | 1),
            message: Vec::with_capacity(2048),
            path: String::new(),
            body: String::new(),
            idempotency_key: String::new(),
        };
        if let Some(path) = requests.constant_path() {
            requests.path = path;
            requests.render_get();
        }
        requests
    }

    /// What stays the same is rendered once.
    fn constant_path(&self) -> Option<String> {
        let operation = match &self.load {
            Load::Operation(operation) => operation,
            Load::Path(path) => return Some(path.clone()),
            Load::Pages { .. } => return None,
        };
        let path = operation.resource.path();
        match operation.action {
            Action::List(25) | Action::Counted => Some(path.to_owned()),
            Action::List(size) => Some(format!("{path}?per_page={size}")),
            Action::Open => Some(format!("{path}?payment_status=open")),
            Action::Search => Some(format!("{path}?search={SEARCHED}")),
            Action::Get
            | Action::Create
            | Action::CreateFinal
            | Action::Move
            | Action::Complete
            | Action::Message => None,
        }
    }

    pub fn next(&mut self) -> &[u8] {
        match &self.load {
            Load::Path(_) => {}
            Load::Pages { path, pages } => {
                let count = usize::try_from(pages.end() - pages.start() + 1).unwrap_or(1);
                let page = pages.start() + self.random.below(count) as u64;
                self.path.clear();
                // Writing to a String cannot fail.
                let _ = write!(self.path, "{path}?page={page}");
                self.render_get();
            }
            Load::Operation(operation) => {
                let Operation { resource, action, .. } = *operation;
                match action {
                    Action::List(_) | Action::Counted | Action::Open | Action::Search => {}
                    Action::Get => {
                        let ids = self.target.ids(resource);
                        let id = &ids[self.random.below(ids.len())];
                        self.path.clear();
                        let _ = write!(self.path, "{}/{id}", resource.path());
                        self.render_get();
                    }
                    Action::Create | Action::CreateFinal => {
                        let number = self.number;
                        self.number += 1;
                        return self.create(resource, number, action == Action::CreateFinal);
                    }
                    Action::Move => return self.move_deal(),
                    Action::Complete => return self.complete(),
                    Action::Message => return self.answer(),
                }
            }
        }
        &self.message
    }

    /// Completes one task or opens it again, so that about every second request changes something: as in the script.
    fn complete(&mut self) -> &[u8] {
        let number = self.number;
        self.number += 1;
        let ids = &self.target.tasks;
        let id = &ids[self.random.below(ids.len())];
        let action = if self.random.below(2) == 0 { "reopen" } else { "complete" };
        let path = format!("{}/{id}/{action}", Resource::Task.path());
        self.body.clear();
        self.body.push_str("{}");
        self.post(&path, number)
    }

    /// Answers one ticket, any of the account's.
    fn answer(&mut self) -> &[u8] {
        let number = self.number;
        self.number += 1;
        let ids = &self.target.tickets;
        let id = &ids[self.random.below(ids.len())];
        let path = format!("{}/{id}/messages", Resource::Ticket.path());
        self.body.clear();
        let _ = write!(self.body, "{{\"body\":\"{REPLY}\"}}");
        self.post(&path, number)
    }

    fn render_get(&mut self) {
        self.message.clear();
        self.target.request("GET", &self.path).render(&self.target.authority, &mut self.message);
    }

    fn create(&mut self, resource: Resource, number: u64, is_final: bool) -> &[u8] {
        self.body.clear();
        match resource {
            Resource::Client => client(&mut self.body, number, "Handel"),
            Resource::Invoice => {
                let clients = &self.target.clients;
                invoice(&mut self.body, number, &clients[self.random.below(clients.len())], is_final);
            }
            // These are only read and changed.
            Resource::Deal | Resource::Task | Resource::Ticket => {}
        }
        self.post(resource.path(), number)
    }

    /// Each connection goes round a few deals of its own, and takes all of them one phase further each time: so every
    /// move changes something, and connections do not wait for one another.
    fn move_deal(&mut self) -> &[u8] {
        let number = self.number;
        self.number += 1;
        let Target { deals, phases, .. } = self.target;
        let first =
            self.series.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let step = usize::try_from(number % DEALS_OF_A_CONNECTION).unwrap_or(0);
        let deal = &deals[first.wrapping_add(step) % deals.len()];
        let lap = usize::try_from(number / DEALS_OF_A_CONNECTION + 1).unwrap_or(0);
        self.body.clear();
        let _ = write!(self.body, "{{\"phase_id\":\"{}\"}}", phases[lap % phases.len()]);
        let path = format!("{}/{deal}/move", Resource::Deal.path());
        self.post(&path, number)
    }

    /// A client that reads find, also by the searched word; those that are made while measuring never match it.
    pub fn fill_client(&mut self, number: u64) -> &[u8] {
        self.body.clear();
        client(
            &mut self.body,
            number,
            if number.is_multiple_of(SEARCHED_EVERY) { SEARCHED } else { "Handel" },
        );
        self.post(Resource::Client.path(), number)
    }

    fn post(&mut self, path: &str, number: u64) -> &[u8] {
        self.idempotency_key.clear();
        let _ = write!(self.idempotency_key, "{}-{number}", self.series);
        self.message.clear();
        let request = Request {
            idempotency_key: Some(&self.idempotency_key),
            body: Some(&self.body),
            ..self.target.request("POST", path)
        };
        request.render(&self.target.authority, &mut self.message);
        &self.message
    }
}

fn client(body: &mut String, number: u64, word: &str) {
    let city = CITIES[usize::try_from(number % 8).unwrap_or(0)];
    let _ = write!(
        body,
        "{{\"type\":\"company\",\"company_name\":\"{word} {number:06} B.V.\",\"firstname\":\"Sanne\",\
         \"lastname\":\"de Vries\",\"email\":\"info{number}@example.com\",\"phone\":\"+31 20 123 4567\",\
         \"address\":\"Prinsengracht {number}\",\"zipcode\":\"1015 DV\",\"city\":\"{city}\",\"country\":\"NL\",\
         \"payment_term\":14}}"
    );
}

fn invoice(body: &mut String, number: u64, client: &str, is_final: bool) {
    let mode = if is_final { "final" } else { "draft" };
    let (quantity, price) = (number % 9 + 1, number % 90 + 10);
    let _ = write!(
        body,
        "{{\"title\":\"Levering {number:06}\",\"client_id\":\"{client}\",\"generation_mode\":\"{mode}\",\"rows\":[\
         {{\"name\":\"Zuurdesembrood\",\"quantity\":{quantity},\"unit\":\"stuk\",\"unit_price\":\"4.25\",\
         \"vat_rate\":\"9\"}},\
         {{\"name\":\"Bezorging\",\"quantity\":1,\"unit_price\":\"{price}.50\",\"vat_rate\":\"21\"}},\
         {{\"name\":\"Advies\",\"quantity\":\"1.5\",\"unit\":\"uur\",\"unit_price\":\"85.00\",\"vat_rate\":\"21\"}}]}}"
    );
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
    use std::collections::HashSet;

    use serde_json::Value;

    use super::*;

    fn text(message: &[u8]) -> String {
        String::from_utf8(message.to_vec()).unwrap()
    }

    fn target() -> Target {
        let mut target = Target::new("h:1".into(), "ba_x".into());
        target.clients = (0..100).map(|number| format!("id{number}")).collect();
        target.deals = (0..1000).map(|number| format!("deal{number}")).collect();
        target.phases = ["p0", "p1", "p2"].map(str::to_owned).into();
        target.tasks.clone_from(&target.clients);
        target.tickets.clone_from(&target.clients);
        target
    }

    fn load(name: &str) -> Load {
        Load::Operation(name.parse().unwrap())
    }

    #[test]
    fn each_create_has_its_own_key_and_a_body_that_is_json() {
        let target = target();
        for (name, field, value) in [
            ("create", "type", "company"),
            ("invoice-draft", "generation_mode", "draft"),
            ("invoice-final", "generation_mode", "final"),
        ] {
            let mut requests = Requests::new(&target, load(name), "0");
            let (first, second) = (text(requests.next()), text(requests.next()));
            let key = |message: &str| {
                message.lines().find(|line| line.starts_with("idempotency-key")).unwrap().to_owned()
            };
            assert_ne!(key(&first), key(&second));
            let body: Value = serde_json::from_str(first.split_once("\r\n\r\n").unwrap().1).unwrap();
            assert_eq!(body[field], value);
            assert_eq!(body["rows"].as_array().map_or(3, Vec::len), 3, "an invoice has three rows");
            assert!(!first.contains(SEARCHED), "what is made while measuring does not change the search");
        }
    }

    #[test]
    fn a_handful_of_ten_thousand_filled_clients_match_the_search() {
        let target = target();
        let mut requests = Requests::new(&target, load("create"), "fill");
        let matching =
            (0..10_000).filter(|number| text(requests.fill_client(*number)).contains(SEARCHED)).count();
        assert!((3..=10).contains(&matching), "{matching}");
    }

    #[test]
    fn a_deal_is_moved_to_another_phase_each_time() {
        let target = target();
        let mut requests = Requests::new(&target, load("deal-move"), "0");
        let mut phases = std::collections::HashMap::new();
        for _ in 0..500 {
            let message = text(requests.next());
            let (head, body) = message.split_once("\r\n\r\n").unwrap();
            let path = head.lines().next().unwrap().to_owned();
            assert!(path.starts_with("POST /v1/deals/deal") && path.contains("/move "), "{path}");
            let body: Value = serde_json::from_str(body).unwrap();
            let phase = body["phase_id"].as_str().unwrap().to_owned();
            assert_ne!(phases.insert(path, phase.clone()), Some(phase));
        }
        assert_eq!(phases.len(), 50);
    }

    #[test]
    fn many_different_tasks_are_completed_and_as_many_reopened() {
        let target = target();
        let mut requests = Requests::new(&target, load("task-complete"), "0");
        let sent: Vec<String> =
            (0..1000).map(|_| text(requests.next()).lines().next().unwrap().to_owned()).collect();
        let completed = sent.iter().filter(|line| line.contains("/complete ")).count();
        assert!((400..=600).contains(&completed), "{completed}");
        assert!(sent.iter().collect::<HashSet<_>>().len() > 180);
    }

    #[test]
    fn many_different_tickets_are_answered_each_with_a_key_of_its_own() {
        let target = target();
        let mut requests = Requests::new(&target, load("ticket-message"), "0");
        let sent: Vec<String> = (0..1000).map(|_| text(requests.next())).collect();
        let lines: HashSet<&str> = sent.iter().filter_map(|message| message.lines().next()).collect();
        assert!(lines.len() > 90, "{}", lines.len());
        assert!(
            lines.iter().all(|line| line.starts_with("POST /v1/tickets/id") && line.contains("/messages "))
        );
        assert_eq!(sent.iter().collect::<HashSet<_>>().len(), 1000);
        let body: Value = serde_json::from_str(sent[0].split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(body["body"], REPLY);
    }

    #[test]
    fn gets_ask_for_many_different_clients() {
        let target = target();
        let mut requests = Requests::new(&target, load("get"), "0");
        let asked: HashSet<String> = (0..1000).map(|_| text(requests.next())).collect();
        assert!(asked.len() > 90, "{}", asked.len());
    }

    #[test]
    fn pages_are_drawn_from_the_whole_range_and_nowhere_else() {
        let target = target();
        let pages = Load::Pages { path: "/v1/invoices", pages: 180..=220 };
        let mut requests = Requests::new(&target, pages, "0");
        let asked: HashSet<String> =
            (0..2000).map(|_| text(requests.next()).lines().next().unwrap().to_owned()).collect();
        let expected =
            (180..=220).map(|page| format!("GET /v1/invoices?page={page} HTTP/1.1")).collect::<HashSet<_>>();
        assert_eq!(asked, expected);
    }
}
