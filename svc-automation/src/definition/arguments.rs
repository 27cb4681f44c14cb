//! The arguments of an rpc, as far as they can be checked before the templates in them are rendered: their names, and which
//! are required. Read from the descriptor once, which is not kept.

use std::collections::BTreeMap;

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use proto::api::Fault;
use proto::{Faults, did_you_mean};
use serde_json::{Map, Value};

use crate::template::is_template;

const FIELD_MASK: &str = "google.protobuf.FieldMask";

/// The fields of a message, without the mask of an update.
pub(super) struct Arguments {
    message: String,
    fields: BTreeMap<String, Argument>,
    /// Filled with the names of the fields that are there, so nobody gives it.
    mask: Option<String>,
}

struct Argument {
    required: bool,
    content: Content,
}

enum Content {
    Message(Arguments),
    /// Also free JSON, which may have templates at any depth.
    Text,
    Other,
}

impl Arguments {
    /// A message that contains itself has no plan of a request either, which is made before.
    pub(super) fn of(message: &MessageDescriptor) -> Self {
        let (masks, fields): (Vec<_>, Vec<_>) = message.fields().partition(is_mask);
        Self {
            message: message.name().to_owned(),
            fields: fields.iter().map(|field| (field.name().to_owned(), Argument::of(field))).collect(),
            mask: masks.first().map(|mask| mask.name().to_owned()),
        }
    }

    /// Reports unknown names and required fields that are missing. Returns the pointers of values that are templates.
    pub(super) fn check(&self, with: &Map<String, Value>, at: &str, faults: &mut Faults) -> Vec<String> {
        let mut check = Check { templates: Vec::new(), faults };
        check.message(self, with, at, true);
        check.templates
    }
}

impl Argument {
    fn of(field: &FieldDescriptor) -> Self {
        let content = match field.kind() {
            Kind::Message(inner) if !inner.full_name().starts_with("google.") => {
                Content::Message(Arguments::of(&inner))
            }
            Kind::String => Content::Text,
            _ => Content::Other,
        };
        Self { required: proto::policy::field(field).required, content }
    }
}

fn is_mask(field: &FieldDescriptor) -> bool {
    matches!(field.kind(), Kind::Message(message) if message.full_name() == FIELD_MASK)
}

struct Check<'f> {
    templates: Vec<String>,
    faults: &'f mut Faults,
}

impl Check<'_> {
    /// `is_whole` is off inside of the message of an update, which may have any part of the fields.
    fn message(&mut self, message: &Arguments, given: &Map<String, Value>, at: &str, is_whole: bool) {
        for (name, value) in given {
            let pointer = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
            match message.fields.get(name) {
                Some(field) => self.value(field, value, &pointer, is_whole && message.mask.is_none()),
                None if message.mask.as_ref() == Some(name) => {
                    let detail =
                        format!("{name} must be left out: it is filled with the fields that are there");
                    self.faults.add_at(pointer, Fault::NotAllowed, detail);
                }
                None => {
                    let names: Vec<&str> = message.fields.keys().map(String::as_str).collect();
                    let meant = did_you_mean(name, names.iter().copied());
                    let has = format!("{} has no field {name}; it has {}", message.message, names.join(", "));
                    let detail = has + &meant;
                    self.faults.add_at(pointer, Fault::NotAllowed, detail);
                }
            }
        }
        for (name, _) in message.fields.iter().filter(|(_, field)| is_whole && field.required) {
            if matches!(given.get(name), None | Some(Value::Null)) {
                self.faults.add_at(format!("{at}/{name}"), Fault::Required, format!("{name} is required"));
            }
        }
    }

    fn value(&mut self, field: &Argument, value: &Value, at: &str, is_whole: bool) {
        match (value, &field.content) {
            (Value::String(text), _) if is_template(text) => self.templates.push(at.to_owned()),
            (Value::Object(given), Content::Message(message)) => self.message(message, given, at, is_whole),
            (Value::Object(_), Content::Text) => self.templates.push(at.to_owned()),
            (Value::Array(items), _) => {
                for (index, item) in items.iter().enumerate() {
                    self.value(field, item, &format!("{at}/{index}"), is_whole);
                }
            }
            _ => {}
        }
    }
}
