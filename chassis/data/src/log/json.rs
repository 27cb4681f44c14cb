//! A stored record as JSON text, converted with the descriptor of its message.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chassis_base::time::from_timestamp;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, ReflectMessage, Value};
use prost_types::Timestamp;
use proto::api::Format;
use serde_json::{Map, Value as Json, json};

/// Returns an empty text if there is no record. For a message that the contract no longer has, only its type is shown.
pub(super) fn text(message: &str, bytes: Option<&[u8]>) -> String {
    let Some(bytes) = bytes else { return String::new() };
    let kind = proto::policy::pool().get_message_by_name(message);
    let record = kind.and_then(|kind| DynamicMessage::decode(kind, bytes).ok());
    record.map_or_else(|| json!({"type": message}), |record| object(&record)).to_string()
}

fn object(message: &DynamicMessage) -> Json {
    if message.descriptor().full_name() == "google.protobuf.Timestamp" {
        let time = message.transcode_to::<Timestamp>().ok().as_ref().and_then(from_timestamp);
        return time.map_or(Json::Null, |time| {
            Json::String(time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true))
        });
    }
    let mut entries = Map::new();
    for field in message.descriptor().fields() {
        let absent = field.supports_presence() && !message.has_field(&field);
        let shown = if absent { Json::Null } else { value(&field, &message.get_field(&field)) };
        entries.insert(field.name().to_owned(), shown);
    }
    Json::Object(entries)
}

fn value(field: &FieldDescriptor, value: &Value) -> Json {
    match value {
        Value::Bool(value) => json!(value),
        Value::I32(value) => json!(value),
        Value::I64(value) => json!(value),
        Value::U32(value) => json!(value),
        Value::U64(value) => json!(value),
        Value::F32(value) => json!(value),
        Value::F64(value) => json!(value),
        Value::String(text) => string(field, text),
        Value::Bytes(bytes) => Json::String(STANDARD.encode(bytes)),
        Value::EnumNumber(number) => name(field, *number),
        Value::Message(message) => object(message),
        Value::List(items) => Json::Array(items.iter().map(|item| self::value(field, item)).collect()),
        Value::Map(entries) => Json::Object(
            entries.iter().map(|(key, item)| (key_text(key), self::value(field, item))).collect(),
        ),
    }
}

fn string(field: &FieldDescriptor, text: &str) -> Json {
    let parsed = (proto::policy::field(field).format() == Format::Json)
        .then(|| serde_json::from_str(text).ok())
        .flatten();
    parsed.unwrap_or_else(|| Json::String(text.to_owned()))
}

fn name(field: &FieldDescriptor, number: i32) -> Json {
    let Kind::Enum(kind) = field.kind() else { return json!(number) };
    kind.get_value(number).map_or(json!(number), |value| {
        if number == 0 { json!("") } else { json!(proto::value_name(&kind, value.name())) }
    })
}

fn key_text(key: &MapKey) -> String {
    match key {
        MapKey::Bool(key) => key.to_string(),
        MapKey::I32(key) => key.to_string(),
        MapKey::I64(key) => key.to_string(),
        MapKey::U32(key) => key.to_string(),
        MapKey::U64(key) => key.to_string(),
        MapKey::String(key) => key.clone(),
    }
}

#[cfg(test)]
mod tests {
    use prost::{Message, Name};
    use proto::relations::{Relation, RelationMeta, RelationType};

    use super::*;

    #[test]
    fn a_record_is_shown_as_integrators_know_it() {
        let created_at = Some(Timestamp { seconds: 1, nanos: 500_000_000 });
        let mut client = Relation { id: "7".to_owned(), ..Relation::default() };
        client.set_type(RelationType::Company);
        client.meta = Some(RelationMeta { created_at, ..RelationMeta::default() });
        let shown = text(&Relation::full_name(), Some(&client.encode_to_vec()));
        let shown: Json = serde_json::from_str(&shown).unwrap();
        assert_eq!((&shown["id"], &shown["type"]), (&json!("7"), &json!("company")));
        assert_eq!(shown["meta"]["created_at"], "1970-01-01T00:00:01.500Z");
        assert_eq!((&shown["payment_term"], &shown["city"]), (&Json::Null, &json!("")));
    }

    #[test]
    fn nothing_is_shown_as_nothing_and_what_is_unknown_as_its_type() {
        assert_eq!(text("admin.relations.v1.Relation", None), "");
        assert_eq!(text("admin.gone.v1.Thing", Some(b"x")), r#"{"type":"admin.gone.v1.Thing"}"#);
    }
}
