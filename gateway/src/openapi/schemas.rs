//! The registry of schemas: which message and use has which name. Hands out references and collects what they refer to;
//! `message.rs` describes that, and may refer to more.

use std::collections::{BTreeMap, VecDeque};

use chassis_transcode::Form;
use prost_reflect::MessageDescriptor;
use serde_json::{Value, json};

/// What a message is used for. Each use has a schema of its own, since a request may leave out what a response always
/// has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Use {
    /// All fields that a create needs are required.
    Create,
    /// No field is required: only changed fields are sent.
    Patch,
    /// As `Patch`, with at least one field.
    NonEmptyPatch,
    /// The object that may wrap the fields of a create or a patch.
    Wrapped,
    /// Every field is present.
    Response,
    /// The `meta` of a response body: as `Response`, with what the gateway adds.
    Meta,
    /// A whole response body: as `Response`, with a `meta` even where the message has none.
    Envelope,
}

/// A message that is referred to and has no schema yet.
pub(super) struct Undescribed {
    pub name: String,
    pub message: MessageDescriptor,
    pub usage: Use,
}

/// The schemas that the operations refer to, under names that are unique.
#[derive(Default)]
pub(super) struct Schemas {
    names: BTreeMap<(String, Use), String>,
    /// `null` for a schema that is referred to and not described yet.
    written: BTreeMap<String, Value>,
    undescribed: VecDeque<Undescribed>,
}

impl Schemas {
    /// Sets a schema by its name.
    pub(super) fn add(&mut self, name: &str, schema: Value) {
        self.written.insert(name.to_owned(), schema);
    }

    /// A reference to the schema of a message. The first one takes the name and leaves the message to be described, so
    /// that a message may contain itself.
    pub(super) fn refer(&mut self, message: &MessageDescriptor, usage: Use) -> Value {
        let key = (message.full_name().to_owned(), usage);
        let name = if let Some(name) = self.names.get(&key) {
            name.clone()
        } else {
            let name = self.free_name(message, usage);
            self.written.insert(name.clone(), Value::Null);
            self.names.insert(key, name.clone());
            self.undescribed.push_back(Undescribed { name: name.clone(), message: message.clone(), usage });
            name
        };
        json!({"$ref": format!("#/components/schemas/{name}")})
    }

    /// The next message to be described; `None` when every reference leads to a schema.
    pub(super) fn next_undescribed(&mut self) -> Option<Undescribed> {
        self.undescribed.pop_front()
    }

    pub(super) fn into_components(self) -> BTreeMap<String, Value> {
        self.written
    }

    /// The message's own name, with the use where a request needs another shape and with the area where two areas
    /// have a message of that name.
    fn free_name(&self, message: &MessageDescriptor, usage: Use) -> String {
        let own = message.name();
        let stem = own.strip_suffix("Input").unwrap_or(own);
        let name = match usage {
            Use::Create if stem == own => format!("{own}Input"),
            // Where `data` is the whole message, the message itself has the name.
            Use::Envelope if Form::of(message) == Form::Whole => format!("{own}Envelope"),
            Use::Create | Use::Response | Use::Meta | Use::Envelope => own.to_owned(),
            Use::Patch | Use::NonEmptyPatch => format!("{stem}Patch"),
            Use::Wrapped => format!("{stem}Fields"),
        };
        if !self.written.contains_key(&name) {
            return name;
        }
        let package = message.package_name().split('.').nth(1).unwrap_or_default().to_owned();
        let mut chars = package.chars();
        let area: String = chars.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(chars).collect();
        format!("{area}{name}")
    }
}
