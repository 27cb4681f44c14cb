//! Example bodies, composed of the examples of the fields.

use chassis_transcode::Form;
use prost_reflect::{Cardinality, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};
use proto::api::{FieldPolicy, Format};
use proto::{policy, value_name};
use serde_json::{Map, Value, json};

const TIMESTAMP: &str = "google.protobuf.Timestamp";
const EXAMPLE_TIME: &str = "2026-11-14T09:30:00.123Z";
const EXAMPLE_DATE: &str = "2026-11-14";
/// A made-up id; try-it-out fills it in and gets a clean 404.
pub(super) const EXAMPLE_ID: &str = "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05";
/// Messages that contain themselves end here.
const MAX_DEPTH: usize = 6;

/// The example that a field's options give.
pub(super) fn of_policy(policy: &FieldPolicy) -> Option<Value> {
    if policy.example.is_empty() { None } else { serde_json::from_str(&policy.example).ok() }
}

/// The values of an enum as integrators write them.
pub(super) fn choices(kind: &EnumDescriptor) -> Vec<String> {
    kind.values().filter(|value| value.number() != 0).map(|value| value_name(kind, value.name())).collect()
}

/// A request body: what has an example and what has to be there, without what the path has.
pub(super) fn request(message: &MessageDescriptor, hidden: &[String]) -> Value {
    let fields = message.fields().filter(|field| !hidden.iter().any(|name| name == field.name()));
    let fields = fields.filter_map(|field| {
        let policy = policy::field(&field);
        let value = match of_policy(&policy) {
            Some(example) => example,
            None if policy.required => required(&field, &policy),
            None => return None,
        };
        Some((field.name().to_owned(), value))
    });
    Value::Object(fields.collect::<Map<_, _>>())
}

fn required(field: &FieldDescriptor, policy: &FieldPolicy) -> Value {
    let value = match field.kind() {
        Kind::Message(message) if message.full_name() != TIMESTAMP => request(&message, &[]),
        _ => match scalar(field, policy) {
            // A text that has to be there is not empty, and a list of ids has several of them.
            Value::String(text) if text.is_empty() && field.name() == "ids" => json!(EXAMPLE_ID),
            Value::String(text) if text.is_empty() => json!(field.name()),
            value => value,
        },
    };
    if field.cardinality() == Cardinality::Repeated { json!([value]) } else { value }
}

/// A response body: every field, a list with one entry.
pub(super) fn response(message: &MessageDescriptor) -> Value {
    response_at(message, 0)
}

/// A whole response: the envelope, whatever of the message is `data`.
pub(super) fn envelope(message: &MessageDescriptor) -> Value {
    let mut sample = response(message);
    if Form::of(message) == Form::Whole {
        return json!({"data": sample, "meta": {}});
    }
    let name = Form::data(message).map(|field| field.name().to_owned()).unwrap_or_default();
    json!({"data": sample[&name].take(), "meta": sample.get("meta").cloned().unwrap_or_else(|| json!({}))})
}

fn response_at(message: &MessageDescriptor, depth: usize) -> Value {
    match message.full_name() {
        "admin.api.v1.PageMeta" => return json!({"page": 1, "per_page": 25, "total": 1, "pages": 1}),
        "admin.api.v1.ListMeta" | "admin.api.v1.WholeListMeta" => return json!({"total": 1}),
        _ => {}
    }
    let fields = message.fields().map(|field| {
        let policy = policy::field(&field);
        let value = of_policy(&policy).unwrap_or_else(|| response_value(&field, &policy, depth));
        (field.name().to_owned(), value)
    });
    Value::Object(fields.collect::<Map<_, _>>())
}

fn response_value(field: &FieldDescriptor, policy: &FieldPolicy, depth: usize) -> Value {
    let list = field.cardinality() == Cardinality::Repeated;
    match field.kind() {
        _ if field.is_map() => json!({}),
        Kind::Message(message) if message.full_name() != TIMESTAMP => {
            if depth >= MAX_DEPTH {
                return if list { json!([]) } else { json!({}) };
            }
            let value = response_at(&message, depth + 1);
            if list { json!([value]) } else { value }
        }
        _ if list => json!([]),
        _ if field.field_descriptor_proto().proto3_optional() => Value::Null,
        _ => scalar(field, policy),
    }
}

fn scalar(field: &FieldDescriptor, policy: &FieldPolicy) -> Value {
    match field.kind() {
        Kind::String => match policy.format() {
            Format::Date | Format::DateOrTime => json!(EXAMPLE_DATE),
            Format::Decimal => json!(0),
            Format::Percentage => json!("21"),
            Format::Json => json!({}),
            Format::Unspecified if is_id(field.name()) => json!(EXAMPLE_ID),
            Format::Unspecified | Format::Document => json!(""),
        },
        Kind::Enum(kind) => choices(&kind).first().map_or(json!(""), |first| json!(first)),
        Kind::Bool => json!(false),
        Kind::Bytes => json!(""),
        Kind::Message(_) => json!(EXAMPLE_TIME),
        _ => json!(policy.min.unwrap_or(0)),
    }
}

/// Whether a field of this name holds an id of ours.
pub(super) fn is_id(name: &str) -> bool {
    name == "id" || ((name.ends_with("_id") || name.ends_with("_guid")) && !name.ends_with("external_id"))
}
