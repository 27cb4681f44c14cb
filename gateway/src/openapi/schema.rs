//! The schemas of messages: one for each message and use, since a request may leave out what a response always has.

use std::collections::BTreeMap;

use prost_reflect::MessageDescriptor;
use proto::policy;
use serde_json::{Map, Value, json};

use super::field;

/// What a message is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// Everything that a create needs has to be there.
    Create,
    /// Only what changes has to be there.
    Patch,
    /// As `Patch`, and at least one field has to be there.
    NonEmptyPatch,
    /// The object that may wrap the fields of a create or a patch.
    Wrapped,
    /// Every field is there.
    Response,
    /// A whole answer: as `Response`, with a `meta` even where the message has none.
    Envelope,
}

/// The schemas that the operations refer to, under names that are unique.
#[derive(Default)]
pub struct Schemas {
    names: BTreeMap<(String, Use), String>,
    schemas: BTreeMap<String, Value>,
}

impl Schemas {
    /// Adds a schema that no message stands for.
    pub fn add(&mut self, name: &str, schema: Value) {
        self.schemas.insert(name.to_owned(), schema);
    }

    /// A reference to the schema of a message, which is made when it is first referred to.
    pub fn refer(&mut self, message: &MessageDescriptor, usage: Use) -> Value {
        let key = (message.full_name().to_owned(), usage);
        let name = if let Some(name) = self.names.get(&key) {
            name.clone()
        } else {
            let name = self.free_name(message, usage);
            // The name is taken before the fields are visited, so that a message may contain itself.
            self.schemas.insert(name.clone(), Value::Null);
            self.names.insert(key, name.clone());
            let schema = self.schema(message, usage);
            self.schemas.insert(name.clone(), schema);
            name
        };
        json!({"$ref": format!("#/components/schemas/{name}")})
    }

    pub fn into_components(self) -> BTreeMap<String, Value> {
        self.schemas
    }

    /// The message's own name, with the use where a request needs another shape and with the area where two areas
    /// have a message of that name.
    fn free_name(&self, message: &MessageDescriptor, usage: Use) -> String {
        let own = message.name();
        let stem = own.strip_suffix("Input").unwrap_or(own);
        let name = match usage {
            Use::Create if stem == own => format!("{own}Input"),
            Use::Create | Use::Response | Use::Envelope => own.to_owned(),
            Use::Patch | Use::NonEmptyPatch => format!("{stem}Patch"),
            Use::Wrapped => format!("{stem}Fields"),
        };
        if !self.schemas.contains_key(&name) {
            return name;
        }
        let package = message.package_name().split('.').nth(1).unwrap_or_default().to_owned();
        let mut letters = package.chars();
        let area: String =
            letters.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(letters).collect();
        format!("{area}{name}")
    }

    fn schema(&mut self, message: &MessageDescriptor, usage: Use) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        let wrapper = policy::message(message).wrapper;
        for field in message.fields() {
            let property = match usage {
                Use::Response | Use::Envelope => field::response(&field, self),
                _ => field::request(&field, self),
            };
            // A required field may sit in the wrapper instead, so that neither place can demand it.
            let demanded = match usage {
                Use::Response | Use::Envelope => !policy::field(&field).left_out,
                Use::Create => policy::field(&field).required && wrapper.is_empty(),
                Use::Patch | Use::NonEmptyPatch | Use::Wrapped => false,
            };
            if demanded {
                required.push(field.name().to_owned());
            }
            properties.insert(field.name().to_owned(), property);
        }
        if !wrapper.is_empty() && matches!(usage, Use::Create | Use::Patch | Use::NonEmptyPatch) {
            let mut inside = self.refer(message, Use::Wrapped);
            inside["description"] = json!("The same fields, wrapped. A field outside the wrapper wins.");
            properties.insert(wrapper, inside);
        }
        if usage == Use::Envelope && !properties.contains_key("meta") {
            self.add("EmptyMeta", json!({"type": "object", "description": "Empty for now."}));
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
}

/// A comment as Markdown whose paragraphs are one line each: where a comment was wrapped means nothing to a reader.
pub fn flowing(comment: &str) -> String {
    comment
        .split("\n\n")
        .map(|paragraph| paragraph.lines().map(str::trim).collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join("\n\n")
}
