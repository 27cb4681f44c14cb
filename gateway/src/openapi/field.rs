//! The schema of one field: its type, limits and text, in a request, in a response and as a query parameter.

use prost_reflect::{Cardinality, FieldDescriptor, Kind};
use proto::api::{FieldPolicy, Format};
use proto::policy;
use serde_json::{Value, json};

use super::example;
use super::schemas::{Schemas, Use};
use super::text::flowing;

const TIMESTAMP: &str = "google.protobuf.Timestamp";
const DEFAULT_MAX_LENGTH: u32 = 255;
const DATE_OR_EMPTY: &str = r"^(\d{4}-\d{2}-\d{2})?$";
const ID_OR_EMPTY: &str = r"^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?$";
const TIME_OR_EMPTY: &str = r"^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z)?$";
/// Decimals are below this, whether they are sent as text or as a number.
const DECIMAL_LIMIT: i64 = 1_000_000_000_000;
/// Every record has these, so that they are never the empty text.
const ALWAYS_SET: [&str; 2] = ["created_at", "updated_at"];

/// A field of a request body. A field that is not required may also be `null`.
pub(super) fn request(field: &FieldDescriptor, schemas: &mut Schemas) -> Value {
    let policy = policy::field(field);
    let value = if field.is_map() {
        json!({"type": "object"})
    } else {
        match field.kind() {
            Kind::Message(message) if message.full_name() == TIMESTAMP => {
                json!({"type": "string", "format": "date-time"})
            }
            Kind::Message(message) => schemas.refer(&message, Use::Create),
            // In a body, unlike in a filter, a text that is not a UUID is refused.
            Kind::String if example::is_id(field.name()) => json!({"type": "string", "format": "uuid"}),
            _ => input(field, &policy, schemas),
        }
    };
    let whole = listed(field, &policy, value);
    let whole = if policy.required { whole } else { nullable(whole) };
    with_text(whole, field, &policy)
}

/// A query parameter. It is text on the wire, which has no `null`.
pub(super) fn query(field: &FieldDescriptor, schemas: &mut Schemas) -> Value {
    let policy = policy::field(field);
    let value = input(field, &policy, schemas);
    let mut schema = listed(field, &policy, value);
    match field.name() {
        "page" => schema["default"] = json!(1),
        "per_page" => schema["default"] = json!(25),
        _ => {}
    }
    schema
}

/// A field of a response, which is always there.
pub(super) fn response(field: &FieldDescriptor, schemas: &mut Schemas) -> Value {
    let policy = policy::field(field);
    let value = output(field, &policy, schemas);
    let schema = if field.is_map() {
        json!({"type": "object"})
    } else if field.cardinality() == Cardinality::Repeated {
        json!({"type": "array", "items": value})
    } else if policy.nullable || is_optional(field) || is_decimal(field, &policy) && !policy.required {
        nullable(value)
    } else {
        value
    };
    with_text(schema, field, &policy)
}

/// The comment above a field.
pub(super) fn text(field: &FieldDescriptor) -> String {
    flowing(&policy::comment(field.parent_message().parent_file().file_descriptor_proto(), field.path()))
}

/// What a scalar may be sent as.
fn input(field: &FieldDescriptor, policy: &FieldPolicy, schemas: &mut Schemas) -> Value {
    match field.kind() {
        Kind::String => input_text(policy, schemas),
        Kind::Enum(kind) => schemas.refer_choice(&kind, false),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
            let min = policy.min.unwrap_or(i32::MIN.into());
            json!({"type": "integer", "format": "int32", "minimum": min, "maximum": policy.max.unwrap_or(i32::MAX.into())})
        }
        Kind::Uint32 | Kind::Fixed32 => {
            let min = policy.min.unwrap_or(0);
            json!({"type": "integer", "minimum": min, "maximum": policy.max.unwrap_or(u32::MAX.into())})
        }
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 | Kind::Uint64 | Kind::Fixed64 => {
            let mut schema = json!({"type": "integer", "format": "int64"});
            if let Some(min) = policy.min {
                schema["minimum"] = json!(min);
            }
            if let Some(max) = policy.max {
                schema["maximum"] = json!(max);
            }
            schema
        }
        Kind::Double | Kind::Float => json!({"type": "number"}),
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Bytes => json!({"type": "string", "contentEncoding": "base64"}),
        Kind::Message(_) => json!({"type": "object"}),
    }
}

fn input_text(policy: &FieldPolicy, schemas: &mut Schemas) -> Value {
    let mut schema = match policy.format() {
        Format::Unspecified => {
            let max = if policy.max_length == 0 { DEFAULT_MAX_LENGTH } else { policy.max_length };
            json!({"type": "string", "maxLength": max})
        }
        Format::Date => json!({"type": "string", "format": "date"}),
        Format::DateOrTime => {
            json!({"anyOf": [{"type": "string", "format": "date"}, {"type": "string", "format": "date-time"}]})
        }
        Format::Decimal => json!({
            "type": ["number", "string"],
            "exclusiveMinimum": -DECIMAL_LIMIT,
            "exclusiveMaximum": DECIMAL_LIMIT,
            "pattern": decimal_pattern(policy.scale),
        }),
        Format::Percentage => json!({
            "type": ["string", "number"],
            "minimum": 0,
            "maximum": 100,
            "pattern": r"^\s*\d{1,3}(\.\d{1,4})?\s*%?\s*$",
        }),
        Format::Json => free_json(schemas),
        Format::Document => {
            json!({"anyOf": [{"type": "string", "maxLength": policy.max_length}, free_json(schemas)]})
        }
    };
    if policy.required && policy.format() == Format::Unspecified {
        schema["minLength"] = json!(1);
        schema["pattern"] = json!(r"\S");
    }
    schema
}

fn decimal_pattern(scale: u32) -> String {
    if scale == 0 { r"^-?\d{1,12}$".to_owned() } else { format!(r"^-?\d{{1,12}}(\.\d{{1,{scale}}})?$") }
}

/// The schema of a single value. An optional value that cannot be `null` is empty instead.
fn output(field: &FieldDescriptor, policy: &FieldPolicy, schemas: &mut Schemas) -> Value {
    if is_own_id(field, policy, schemas) {
        return json!({"type": "string", "format": "uuid"});
    }
    let may_be_empty = !(policy.nullable || policy.required || is_optional(field))
        && field.cardinality() != Cardinality::Repeated;
    match field.kind() {
        Kind::String => match policy.format() {
            Format::Unspecified
                if !policy.refers_to.is_empty() && example::is_id(field.name()) && may_be_empty =>
            {
                json!({"type": "string", "pattern": ID_OR_EMPTY})
            }
            Format::Unspecified | Format::DateOrTime | Format::Percentage | Format::Document => {
                json!({"type": "string"})
            }
            Format::Date if may_be_empty => json!({"type": "string", "pattern": DATE_OR_EMPTY}),
            Format::Date => json!({"type": "string", "format": "date"}),
            Format::Decimal => json!({"type": "number"}),
            Format::Json => free_json(schemas),
        },
        Kind::Enum(kind) => schemas.refer_choice(&kind, may_be_empty),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => json!({"type": "integer", "format": "int32"}),
        Kind::Uint32 | Kind::Fixed32 => json!({"type": "integer"}),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 | Kind::Uint64 | Kind::Fixed64 => {
            json!({"type": "integer", "format": "int64"})
        }
        Kind::Double | Kind::Float => json!({"type": "number"}),
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Bytes => json!({"type": "string", "contentEncoding": "base64"}),
        Kind::Message(message) if message.full_name() == TIMESTAMP => {
            if may_be_empty && !ALWAYS_SET.contains(&field.name()) {
                json!({"type": "string", "pattern": TIME_OR_EMPTY})
            } else {
                json!({"type": "string", "format": "date-time"})
            }
        }
        Kind::Message(message) => schemas.refer(&message, Use::Response),
    }
}

/// Whether it always holds an id that we made, unless it is `null`: the id of the record itself, or of one that it refers
/// to. A reference that is neither required nor optional is the empty text where there is none.
fn is_own_id(field: &FieldDescriptor, policy: &FieldPolicy, schemas: &Schemas) -> bool {
    if !matches!(field.kind(), Kind::String) || policy.format() != Format::Unspecified {
        return false;
    }
    if field.name() == "id" {
        return schemas.is_record(field.parent_message());
    }
    // An example of another form, such as that of a provider, says that it is not one of ours.
    let is_uuid = |example: Value| example.as_str().is_some_and(|text| uuid::Uuid::try_parse(text).is_ok());
    let looks_like_one = example::of_policy(policy).is_none_or(is_uuid);
    example::is_id(field.name()) && (policy.required || is_optional(field)) && looks_like_one
}

/// A JSON object that we pass on.
pub(super) fn free_json(schemas: &mut Schemas) -> Value {
    schemas.shared(
        "JsonObject",
        || json!({"type": "object", "additionalProperties": true, "description": "Any JSON object."}),
    )
}

fn is_optional(field: &FieldDescriptor) -> bool {
    field.field_descriptor_proto().proto3_optional()
}

fn is_decimal(field: &FieldDescriptor, policy: &FieldPolicy) -> bool {
    matches!(field.kind(), Kind::String) && policy.format() == Format::Decimal
}

fn listed(field: &FieldDescriptor, policy: &FieldPolicy, value: Value) -> Value {
    if field.cardinality() != Cardinality::Repeated || field.is_map() {
        return value;
    }
    let mut list = json!({"type": "array", "items": value});
    if policy.max_items > 0 {
        list["maxItems"] = json!(policy.max_items);
    }
    list
}

/// The same schema, with `null` allowed as well.
fn nullable(mut schema: Value) -> Value {
    if schema.get("$ref").is_some() {
        return json!({"anyOf": [schema, {"type": "null"}]});
    }
    if let Some(choices) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        choices.push(json!({"type": "null"}));
        return schema;
    }
    schema["type"] = match schema["type"].take() {
        Value::Array(mut types) => {
            types.push(json!("null"));
            Value::Array(types)
        }
        one => json!([one, "null"]),
    };
    schema
}

fn with_text(mut schema: Value, field: &FieldDescriptor, policy: &FieldPolicy) -> Value {
    let text = text(field);
    if !text.is_empty() {
        schema["description"] = json!(text);
    }
    if let Some(example) = example::of_policy(policy) {
        schema["examples"] = json!([example]);
    }
    schema
}
