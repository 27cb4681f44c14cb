//! The schema of one message for one use.

use chassis_transcode::{Expansion, Form};
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use proto::policy;
use serde_json::{Map, Value, json};

use super::field;
use super::route::FIELD_MASK;
use super::schemas::{Schemas, Undescribed, Use};
use super::text::flowing;

const IGNORED: &str = "ignored";

/// Describes every message that is referred to, and those that their descriptions refer to.
pub(super) fn describe_all(schemas: &mut Schemas) {
    while let Some(next) = schemas.next_undescribed() {
        let schema = describe(&next, schemas);
        schemas.add(&next.name, schema);
    }
}

fn describe(next: &Undescribed, schemas: &mut Schemas) -> Value {
    let (message, usage) = (&next.message, next.usage);
    if usage == Use::Envelope && Form::of(message) == Form::Whole {
        let meta = schemas.shared("EmptyMeta", empty_meta);
        return json!({
            "type": "object",
            "properties": {
                "data": schemas.refer(message, Use::Response),
                "meta": meta,
            },
            "required": ["data", "meta"],
        });
    }
    let data = Form::data(message).filter(|_| usage == Use::Envelope);
    let mut properties = Map::new();
    let mut required = Vec::new();
    let wrapper = policy::message(message).wrapper;
    for field in message.fields().filter(|field| !is_hidden(field, next)) {
        let property = match usage {
            Use::Envelope if field.name() == "meta" => meta(&field, schemas),
            Use::Response | Use::Meta | Use::Envelope => field::response(&field, schemas),
            _ => field::request(&field, schemas),
        };
        // A required field may be in the wrapper instead, so that neither object can require it.
        let is_required = match usage {
            Use::Response | Use::Meta | Use::Envelope => !policy::field(&field).left_out,
            Use::Create => policy::field(&field).required && wrapper.is_empty(),
            Use::Patch | Use::NonEmptyPatch | Use::Wrapped => false,
        };
        // The only field of an answer is its `data`, whatever it is called.
        let is_data = data.as_ref().is_some_and(|data| data.number() == field.number());
        let name = if is_data { "data" } else { field.name() };
        if is_required {
            required.push(name.to_owned());
        }
        properties.insert(name.to_owned(), property);
    }
    if usage == Use::Response {
        properties.extend(expanded(message, schemas).map(|schema| ("expanded".to_owned(), schema)));
    }
    if usage == Use::Meta {
        properties.insert(IGNORED.to_owned(), ignored());
    }
    if !wrapper.is_empty() && matches!(usage, Use::Create | Use::Patch | Use::NonEmptyPatch) {
        let mut inside = schemas.refer(message, Use::Wrapped);
        inside["description"] = json!("The same fields, wrapped. A field outside the wrapper wins.");
        properties.insert(wrapper, inside);
    }
    if usage == Use::Envelope && !properties.contains_key("meta") {
        properties.insert("meta".to_owned(), schemas.shared("EmptyMeta", empty_meta));
        required.push("meta".to_owned());
    }
    let mut schema = json!({"type": "object", "properties": properties});
    let text = flowing(&policy::comment(message.parent_file().file_descriptor_proto(), message.path()));
    if !text.is_empty() {
        schema["description"] = json!(text);
    }
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if usage == Use::NonEmptyPatch {
        schema["minProperties"] = json!(1);
    }
    schema
}

/// The records that a record refers to. They are there where a GET has asked for them.
fn expanded(message: &MessageDescriptor, schemas: &mut Schemas) -> Option<Value> {
    // The references in the `meta` of a record belong to the record.
    if message.name().ends_with("Meta") {
        return None;
    }
    let mut shown = Map::new();
    for expansion in Expansion::of_record(message) {
        let pool = message.parent_pool();
        let record =
            pool.all_messages().find(|other| policy::message(other).kinds.contains(&expansion.kind))?;
        let record = schemas.refer(&record, Use::Response);
        shown.insert(expansion.name, json!({"anyOf": [record, {"type": "null"}]}));
    }
    (!shown.is_empty()).then(|| {
        json!({
            "type": "object",
            "description": "The records that `expand` of a GET names; `null` where there is none.",
            "properties": shown,
        })
    })
}

/// Whether a request does not carry the field: the path does, or the gateway makes it of what the body has.
fn is_hidden(field: &FieldDescriptor, next: &Undescribed) -> bool {
    let is_mask = matches!(field.kind(), Kind::Message(message) if message.full_name() == FIELD_MASK);
    is_mask || next.hidden.iter().any(|name| name == field.name())
}

/// The `meta` of an envelope.
fn meta(field: &FieldDescriptor, schemas: &mut Schemas) -> Value {
    match field.kind() {
        Kind::Message(message) => schemas.refer(&message, Use::Meta),
        _ => field::response(field, schemas),
    }
}

/// The `meta` of an envelope whose message has none.
pub(super) fn empty_meta() -> Value {
    json!({
        "type": "object",
        "description": "Empty, unless there is something to say about the request.",
        "properties": {IGNORED: ignored()},
    })
}

/// What the gateway adds to every `meta`.
fn ignored() -> Value {
    json!({
        "type": "array",
        "items": {"type": "string"},
        "description": "Names in the request that nobody knows, and that had no effect: JSON pointers into the body, and parameters as `?name`. Left out when there are none. At most 20, and then how many more.",
        "example": ["/rows/0/qty", "?status"],
    })
}
