//! The schema of one message for one use.

use prost_reflect::MessageDescriptor;
use proto::policy;
use serde_json::{Map, Value, json};

use super::field;
use super::schemas::{Schemas, Use};
use super::text::flowing;

/// Describes every message that is referred to, and those that their descriptions refer to.
pub(super) fn describe_all(schemas: &mut Schemas) {
    while let Some(next) = schemas.next_undescribed() {
        let schema = describe(&next.message, next.usage, schemas);
        schemas.add(&next.name, schema);
    }
}

fn describe(message: &MessageDescriptor, usage: Use, schemas: &mut Schemas) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    let wrapper = policy::message(message).wrapper;
    for field in message.fields() {
        let property = match usage {
            Use::Response | Use::Envelope => field::response(&field, schemas),
            _ => field::request(&field, schemas),
        };
        // A required field may be in the wrapper instead, so that neither object can require it.
        let is_required = match usage {
            Use::Response | Use::Envelope => !policy::field(&field).left_out,
            Use::Create => policy::field(&field).required && wrapper.is_empty(),
            Use::Patch | Use::NonEmptyPatch | Use::Wrapped => false,
        };
        if is_required {
            required.push(field.name().to_owned());
        }
        properties.insert(field.name().to_owned(), property);
    }
    if !wrapper.is_empty() && matches!(usage, Use::Create | Use::Patch | Use::NonEmptyPatch) {
        let mut inside = schemas.refer(message, Use::Wrapped);
        inside["description"] = json!("The same fields, wrapped. A field outside the wrapper wins.");
        properties.insert(wrapper, inside);
    }
    if usage == Use::Envelope && !properties.contains_key("meta") {
        schemas.add("EmptyMeta", json!({"type": "object", "description": "Empty for now."}));
        properties.insert("meta".to_owned(), json!({"$ref": "#/components/schemas/EmptyMeta"}));
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
