//! The JSON shapes of the contract once more, written for plainness: what the fast way is compared with.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chassis_transcode::Form;
use chrono::{DateTime, SecondsFormat};
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage, Value};
use proto::api::Format;

pub(crate) fn envelope(response: &DynamicMessage) -> String {
    let mut json = object(response);
    match Form::of(&response.descriptor()) {
        Form::Whole => return format!("{{\"data\":{json},\"meta\":{{}}}}"),
        Form::Field { .. } => {
            let data = Form::data(&response.descriptor()).unwrap();
            json = json.replacen(&format!("{{{:?}:", data.name()), "{\"data\":", 1);
        }
        Form::Nothing | Form::Unclear => {}
    }
    if response.descriptor().get_field_by_name("meta").is_none() {
        json.truncate(json.len() - 1);
        json.push_str(",\"meta\":{}}");
    }
    json
}

fn declared(message: &MessageDescriptor) -> Vec<FieldDescriptor> {
    let proto = message.descriptor_proto();
    proto.field.iter().map(|field| message.get_field_by_name(field.name()).unwrap()).collect()
}

/// Every field, in the order of declaration.
fn object(message: &DynamicMessage) -> String {
    let fields: Vec<String> = declared(&message.descriptor())
        .iter()
        .filter(|field| message.has_field(field) || !proto::policy::field(field).left_out)
        .map(|field| format!("{:?}:{}", field.name(), shown(message, field)))
        .collect();
    format!("{{{}}}", fields.join(","))
}

fn shown(message: &DynamicMessage, field: &FieldDescriptor) -> String {
    let value = message.get_field(field);
    let policy = proto::policy::field(field);
    let optional = field.field_descriptor_proto().proto3_optional();
    if let Some(items) = value.as_list() {
        let items: Vec<String> =
            items.iter().map(|item| single(field, item).unwrap_or(empty(field))).collect();
        return format!("[{}]", items.join(","));
    }
    if field.supports_presence() && !message.has_field(field) {
        return match field.kind() {
            _ if optional || policy.nullable => "null".to_owned(),
            Kind::Message(inner) if is_time(&inner) => "\"\"".to_owned(),
            Kind::Message(inner) => object(&DynamicMessage::new(inner)),
            other => panic!("{other:?} has presence"),
        };
    }
    match single(field, &value) {
        Some(json) => json,
        None if optional => "null".to_owned(),
        None if policy.format() == Format::Json => "{}".to_owned(),
        None => empty(field),
    }
}

fn empty(field: &FieldDescriptor) -> String {
    if matches!(field.kind(), Kind::Enum(_)) { "\"\"" } else { "null" }.to_owned()
}

/// `None` for a value that says nothing.
fn single(field: &FieldDescriptor, value: &Value) -> Option<String> {
    Some(match value {
        Value::Bool(value) => value.to_string(),
        Value::I32(value) => value.to_string(),
        Value::I64(value) => value.to_string(),
        Value::U32(value) => value.to_string(),
        Value::U64(value) => value.to_string(),
        Value::Bytes(value) => format!("\"{}\"", STANDARD.encode(value)),
        Value::EnumNumber(number) => {
            let Kind::Enum(kind) = field.kind() else { panic!("an enum") };
            let known = kind.get_value(*number).filter(|_| *number != 0)?;
            format!("\"{}\"", proto::value_name(&kind, known.name()))
        }
        Value::String(text) => match proto::policy::field(field).format() {
            Format::Decimal | Format::Json if text.is_empty() => return None,
            Format::Decimal | Format::Json => text.clone(),
            _ => serde_json::to_string(text).unwrap(),
        },
        Value::Message(inner) if is_time(&inner.descriptor()) => {
            format!("\"{}\"", time(inner, SecondsFormat::Millis))
        }
        Value::Message(inner) => object(inner),
        other => panic!("{other:?} is not part of the contract"),
    })
}

fn is_time(message: &MessageDescriptor) -> bool {
    message.full_name() == "google.protobuf.Timestamp"
}

fn time(message: &DynamicMessage, precision: SecondsFormat) -> String {
    let seconds = message.get_field_by_name("seconds").unwrap().as_i64().unwrap();
    let nanos = message.get_field_by_name("nanos").unwrap().as_i32().unwrap();
    DateTime::from_timestamp(seconds, nanos.cast_unsigned()).unwrap().to_rfc3339_opts(precision, true)
}

/// The JSON with which an integrator would send this message: only the fields that are set.
pub(crate) fn sent(message: &DynamicMessage) -> String {
    let fields: Vec<String> = message
        .fields()
        .map(|(field, value)| format!("{:?}: {}", field.name(), sent_value(&field, value)))
        .collect();
    format!("{{ {} }}", fields.join(" ,\n"))
}

fn sent_value(field: &FieldDescriptor, value: &Value) -> String {
    match value {
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(|item| sent_value(field, item)).collect();
            format!("[ {}]", items.join(", "))
        }
        Value::Message(inner) if is_time(&inner.descriptor()) => {
            format!("\"{}\"", time(inner, SecondsFormat::Nanos))
        }
        Value::Message(inner) => sent(inner),
        other => single(field, other).unwrap(),
    }
}

/// The text of a query parameter.
pub(crate) fn parameter(field: &FieldDescriptor, value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::List(items) => items.iter().map(|item| parameter(field, item)).collect::<Vec<_>>().join(","),
        other => sent_value(field, other).trim_matches('"').to_owned(),
    }
}
