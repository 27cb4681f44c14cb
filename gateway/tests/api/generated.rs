//! Requests that are generated from the contract, right and wrong ones: none of them is ever answered with a server error.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use gateway::testing::Api;
use http::Method;
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Map, Value, json};

use crate::corpus::values;
use crate::coverage::{body_for, path_of, things_of};
use crate::support::Mesh;

/// How many requests are made of each operation; `GENERATED_REQUESTS` asks for another number, to search for longer.
const OF_EACH: usize = 12;
/// The deepest nesting of a generated body.
const MAX_DEPTH: usize = 3;

/// An operation with what requests are made of.
struct Target {
    method: Method,
    /// With the ids of records that are there, and of none.
    paths: Vec<String>,
    /// A body that is right, or nearly.
    body: Value,
    input: MessageDescriptor,
    raw: Option<String>,
}

struct Generator {
    random: StdRng,
    ids: Vec<String>,
    strange: Vec<String>,
}

impl Generator {
    fn chance(&mut self, of_ten: u32) -> bool {
        self.random.random_range(0..10) < of_ten
    }

    fn one<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        all.choose(&mut self.random).unwrap()
    }

    fn strange(&mut self) -> Value {
        let strange = self.strange.choose(&mut self.random).unwrap();
        // What is no JSON value is sent as a text.
        serde_json::from_str(strange).unwrap_or_else(|_| json!(strange))
    }

    fn value(&mut self, field: &FieldDescriptor, depth: usize) -> Value {
        if self.chance(2) {
            return self.strange();
        }
        if field.is_list() {
            let count = self.random.random_range(0..4);
            return (0..count).map(|_| self.single(field, depth)).collect();
        }
        self.single(field, depth)
    }

    fn single(&mut self, field: &FieldDescriptor, depth: usize) -> Value {
        match field.kind() {
            Kind::Message(message) if message.full_name().starts_with("google.") => {
                json!("2026-11-14T09:30:00Z")
            }
            Kind::Message(message) if depth < MAX_DEPTH => self.object(&message, depth + 1),
            Kind::Message(_) => json!({}),
            Kind::Bool => json!(self.chance(5)),
            Kind::Enum(choices) => {
                let names: Vec<String> =
                    choices.values().map(|value| value.name().to_ascii_lowercase()).collect();
                let name = self.one(&names).clone();
                json!(name.rsplit('_').next().unwrap_or_default())
            }
            Kind::String if field.name().ends_with("id") || field.name().ends_with("ids") => {
                let ids = self.ids.clone();
                json!(self.one(&ids))
            }
            Kind::String => {
                let texts = [
                    "Bread",
                    "12.50",
                    "2026-11-14",
                    "nl",
                    "21%",
                    "a@example.com",
                    "2026-11-14T09:30:00Z",
                    "asc",
                    "open",
                    "",
                ];
                json!(self.one(&texts))
            }
            _ => json!(self.random.random_range(-2..200)),
        }
    }

    fn object(&mut self, message: &MessageDescriptor, depth: usize) -> Value {
        let mut object = Map::new();
        for field in message.fields() {
            if self.chance(4) {
                object.insert(field.name().to_owned(), self.value(&field, depth));
            }
        }
        if self.chance(1) {
            object.insert("nobody_knows".to_owned(), self.strange());
        }
        Value::Object(object)
    }

    /// A right body with some of its values changed or gone.
    fn near(&mut self, body: &Value) -> Value {
        let Value::Object(entries) = body else { return body.clone() };
        let mut near = Map::new();
        for (name, value) in entries {
            match self.random.random_range(0..8) {
                0 => {}
                1 => {
                    near.insert(name.clone(), self.strange());
                }
                _ => {
                    near.insert(name.clone(), value.clone());
                }
            }
        }
        Value::Object(near)
    }

    fn query(&mut self, input: &MessageDescriptor) -> String {
        let mut query = String::new();
        // Nobody waits here for what never comes.
        for field in input.fields().filter(|field| field.name() != "wait") {
            if self.chance(2) {
                let value = match self.value(&field, MAX_DEPTH) {
                    Value::String(text) => text,
                    other => other.to_string(),
                };
                query.push(if query.is_empty() { '?' } else { '&' });
                query.push_str(field.name());
                query.push('=');
                for byte in value.bytes().take(300) {
                    let _ = write!(query, "%{byte:02X}");
                }
            }
        }
        if self.chance(1) {
            query.push_str(if query.is_empty() { "?expand=client,%00" } else { "&expand=client" });
        }
        query
    }

    fn headers(&mut self) -> Vec<(&'static str, &'static str)> {
        let all = [
            ("accept", "text/csv"),
            ("accept", "application/x-ndjson;q=0.3, */*"),
            ("dry-run", "true"),
            ("dry-run", "maybe"),
            ("if-match", "\"1\""),
            ("if-match", "W/\"1\", *"),
            ("if-none-match", "\"1\""),
            ("prefer", "handling=strict"),
            ("idempotency-key", "the same"),
            ("idempotency-key", "another"),
            ("x-automation-depth", "99999999999"),
            ("accept-encoding", "br;q=1.0, gzip;q=0.8, *;q=0.1"),
        ];
        let mut headers =
            vec![("content-type", if self.chance(9) { "application/json" } else { "text/plain" })];
        if self.chance(3) {
            headers.push(*self.one(&all));
        }
        headers
    }

    async fn send(&mut self, api: &Api, target: &Target) -> (String, u16) {
        let mut path = self.one(&target.paths).clone();
        if target.method == Method::GET || self.chance(1) {
            path = path.split('?').next().unwrap_or_default().to_owned() + &self.query(&target.input);
        }
        let mut headers = self.headers();
        let body = match (&target.raw, target.method == Method::GET) {
            (_, true) => String::new(),
            (Some(raw), _) => {
                headers[0] = ("content-type", Box::leak(raw.clone().into_boxed_str()));
                self.near(&target.body).to_string()
            }
            (None, _) if self.chance(4) => self.near(&target.body).to_string(),
            (None, _) if self.chance(1) => self.one(&self.strange.clone()).clone(),
            (None, _) => {
                let message = target.input.clone();
                self.object(&body_message(&message), 0).to_string()
            }
        };
        let sent =
            format!("{} {path} {headers:?} {}", target.method, body.chars().take(400).collect::<String>());
        match api.try_send(target.method.clone(), &path, &headers, body).await {
            Ok(answer) => (sent, answer.status.as_u16()),
            Err(error) => (format!("{sent}: {error}"), 0),
        }
    }
}

/// The message that a body fills: that of the only message field, or the request itself.
fn body_message(input: &MessageDescriptor) -> MessageDescriptor {
    let inner = input.fields().find_map(|field| match field.kind() {
        Kind::Message(message) if !field.is_list() && !message.full_name().starts_with("google.") => {
            Some(message)
        }
        _ => None,
    });
    inner.unwrap_or_else(|| input.clone())
}

#[tokio::test]
async fn no_generated_request_gives_a_server_error() {
    let mesh = Mesh::start_with(&["--rate-per-minute", "0"]).await;
    let scopes: Vec<&str> = gateway::scopes::all().iter().map(AsRef::as_ref).collect();
    let (api, account) = mesh.api_of_new_account(&scopes).await;
    let mut targets = Vec::new();
    let mut ids = vec!["019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05".to_owned(), "none".to_owned()];
    let services = proto::policy::pool().services().flat_map(|service| service.methods().collect::<Vec<_>>());
    let methods: Vec<_> = services.collect();
    let mut known = BTreeMap::new();
    for operation in crate::coverage::all_operations() {
        let prefix = operation.path.split('{').next().unwrap_or_default();
        if !known.contains_key(prefix) {
            let things = things_of(&mesh, &api, &account, prefix).await;
            ids.extend(things.iter().flat_map(|(_, id)| id.split(',')).map(str::to_owned));
            known.insert(prefix.to_owned(), things);
        }
        let things = &known[prefix];
        let own = things.iter().find(|(of, _)| *of == prefix).map(|(_, id)| id.clone());
        let nothing = ids[0].clone();
        targets.push(Target {
            method: operation.method.clone(),
            paths: vec![
                path_of(&operation, own.as_deref().unwrap_or(&nothing)),
                path_of(&operation, own.as_deref().unwrap_or("x%00")),
                path_of(&operation, "not-an-id"),
            ],
            body: body_for(&operation, things),
            input: methods.iter().find(|method| method.full_name() == operation.name).unwrap().input(),
            raw: operation.policy.takes.first().cloned(),
        });
    }
    let count = std::env::var("GENERATED_REQUESTS").ok().and_then(|text| text.parse::<usize>().ok());
    let of_each = count.map_or(OF_EACH, |count| count.div_ceil(targets.len()));
    let targets = Arc::new(targets);
    // Several at a time, so that they meet each other. Each sender has random numbers of its own.
    let senders = (0..4).map(|seed| {
        let (api, targets, ids) = (api.clone(), Arc::clone(&targets), ids.clone());
        tokio::spawn(async move {
            let mut generator = Generator { random: StdRng::seed_from_u64(seed), ids, strange: values() };
            let mut statuses = BTreeMap::<u16, usize>::new();
            for _ in 0..of_each.div_ceil(4) {
                for target in targets.iter() {
                    let (sent, status) = generator.send(&api, target).await;
                    assert!((200..500).contains(&status), "{status} for {sent}");
                    *statuses.entry(status).or_default() += 1;
                }
            }
            statuses
        })
    });
    let mut statuses = BTreeMap::<u16, usize>::new();
    for sender in senders.collect::<Vec<_>>() {
        for (status, count) in sender.await.unwrap() {
            *statuses.entry(status).or_default() += count;
        }
    }
    let of = |range: std::ops::Range<u16>| statuses.range(range).map(|(_, count)| count).sum::<usize>();
    println!("{statuses:?}");
    assert!(of(200..300) * 10 > of(200..500), "too few are right to say anything: {statuses:?}");
    assert!(of(400..500) * 10 > of(200..500), "too few are wrong to say anything: {statuses:?}");
}
