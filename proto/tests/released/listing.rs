//! The contract as a list of facts, one a line and sorted, so that a change of it shows as a change of lines.
//!
//! A line is a kind, what it is about, a colon and what is so. Comments and examples are no facts, nor is the order in a
//! file.

use std::collections::{BTreeSet, HashSet};

use prost_reflect::{
    DescriptorPool, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor,
};
use proto::api::{FieldPolicy, Format};
use proto::google::api::http_rule::Pattern;
use proto::policy;

/// Every fact of the packages that are ours.
pub(crate) fn of(pool: &DescriptorPool) -> String {
    let mut facts = BTreeSet::new();
    let (mut asked, mut answered) = (HashSet::new(), HashSet::new());
    for method in pool.services().flat_map(|service| service.methods().collect::<Vec<_>>()) {
        if is_ours(method.full_name()) {
            reach(&method.input(), &mut asked);
            reach(&method.output(), &mut answered);
            rpc(&method, &mut facts);
        }
    }
    for message in pool.all_messages().filter(|it| is_ours(it.full_name()) && !it.is_map_entry()) {
        let name = message.full_name();
        describe(&message, &mut facts);
        if asked.contains(name) {
            facts.insert(format!("request {name}: is one, or part of one"));
            facts.extend(message.fields().filter_map(|field| input(&field)));
        }
        if answered.contains(name) {
            facts.extend(message.fields().filter_map(|field| output(&field)));
        }
    }
    for kind in pool.all_enums().filter(|it| is_ours(it.full_name())) {
        values(&kind, &mut facts);
    }
    facts.into_iter().fold(String::new(), |text, fact| text + &fact + "\n")
}

fn is_ours(name: &str) -> bool {
    name.starts_with("admin.")
}

/// The message and all that it is made of.
fn reach(message: &MessageDescriptor, found: &mut HashSet<String>) {
    if found.insert(message.full_name().to_owned()) {
        for field in message.fields() {
            if let Kind::Message(part) = field.kind() {
                reach(&part, found);
            }
        }
    }
}

fn rpc(method: &MethodDescriptor, facts: &mut BTreeSet<String>) {
    let name = format!("{}/{}", method.parent_service().full_name(), method.name());
    let stream = |streams: bool| if streams { "stream " } else { "" };
    facts.insert(format!(
        "rpc {name}: {}{} returns {}{}",
        stream(method.is_client_streaming()),
        method.input().full_name(),
        stream(method.is_server_streaming()),
        method.output().full_name()
    ));
    let policy = policy::method(method).unwrap_or_default();
    let scope = if policy.scope.is_empty() { "none" } else { &policy.scope };
    let rate = policy.rate().as_str_name();
    if policy.internal {
        // What internal teams may call, they may go on calling when keys may as well.
        facts.insert(format!("access {name}: ACCESS_MESH scope none rate {rate}"));
        facts.insert(format!("keys {name}: scope {scope}"));
    } else {
        facts.insert(format!("access {name}: {} scope {scope} rate {rate}", policy.access().as_str_name()));
    }
    let Some(rule) = policy::http_rule(method) else { return };
    let (verb, path) = match rule.pattern {
        Some(Pattern::Get(path)) => ("GET", path),
        Some(Pattern::Put(path)) => ("PUT", path),
        Some(Pattern::Post(path)) => ("POST", path),
        Some(Pattern::Delete(path)) => ("DELETE", path),
        Some(Pattern::Patch(path)) => ("PATCH", path),
        None => return,
    };
    let said = [("body", &rule.body), ("type", &policy.media_type), ("location", &policy.location)];
    let said = said.into_iter().chain([("signature", &policy.signature)]);
    let said: String = said
        .filter(|(_, it)| !it.is_empty())
        .fold(String::new(), |text, (what, it)| text + " " + what + " " + it);
    let needs = if policy.needs_a_field { " needs a field" } else { "" };
    facts.insert(format!("route {verb} {path}: {name} {}{said}{needs}", policy.success));
}

fn describe(message: &MessageDescriptor, facts: &mut BTreeSet<String>) {
    let name = message.full_name();
    facts.insert(format!("message {name}: exists"));
    let wrapper = policy::message(message).wrapper;
    if !wrapper.is_empty() {
        facts.insert(format!("wrapper {name}: {wrapper}"));
    }
    for field in message.fields() {
        let one_of = field.containing_oneof().filter(|it| !it.is_synthetic());
        let label = match one_of {
            Some(one_of) => format!(" oneof {}", one_of.name()),
            None if field.is_map() => " map".to_owned(),
            None if field.is_list() => " repeated".to_owned(),
            None if field.supports_presence() && !matches!(field.kind(), Kind::Message(_)) => {
                " optional".to_owned()
            }
            None => String::new(),
        };
        facts.insert(format!("field {}: {} {}{label}", field.full_name(), field.number(), type_of(&field)));
    }
}

fn type_of(field: &FieldDescriptor) -> String {
    match field.kind() {
        Kind::Message(message) if message.is_map_entry() => {
            format!(
                "{} to {}",
                type_of(&message.map_entry_key_field()),
                type_of(&message.map_entry_value_field())
            )
        }
        Kind::Message(message) => message.full_name().to_owned(),
        Kind::Enum(kind) => kind.full_name().to_owned(),
        scalar => format!("{scalar:?}"),
    }
}

/// What a field of a request has to be.
fn input(field: &FieldDescriptor) -> Option<String> {
    let FieldPolicy { required, max_length, min, max, max_items, scale, .. } = policy::field(field);
    let mut said = Vec::new();
    if required {
        said.push("required".to_owned());
    }
    let counts = [("max_length", max_length), ("max_items", max_items), ("scale", scale)];
    said.extend(counts.iter().filter(|(_, count)| *count > 0).map(|(what, count)| format!("{what} {count}")));
    said.extend(
        [("min", min), ("max", max)].iter().filter_map(|(what, it)| it.map(|it| format!("{what} {it}"))),
    );
    said.extend(format(field));
    (!said.is_empty()).then(|| format!("input {}: {}", field.full_name(), said.join(", ")))
}

/// How a field of an answer is shown.
fn output(field: &FieldDescriptor) -> Option<String> {
    let FieldPolicy { required, nullable, left_out, .. } = policy::field(field);
    let flags = [("never empty", required), ("or null", nullable), ("or left out", left_out)];
    let said: Vec<String> = flags.iter().filter(|(_, it)| *it).map(|(what, _)| (*what).to_owned()).collect();
    let said = [said, format(field).into_iter().collect()].concat();
    (!said.is_empty()).then(|| format!("output {}: {}", field.full_name(), said.join(", ")))
}

fn format(field: &FieldDescriptor) -> Option<String> {
    let format = policy::field(field).format();
    (format != Format::Unspecified).then(|| format.as_str_name().to_owned())
}

fn values(kind: &EnumDescriptor, facts: &mut BTreeSet<String>) {
    for value in kind.values() {
        facts.insert(format!("value {}.{}: {}", kind.full_name(), value.name(), value.number()));
    }
}
