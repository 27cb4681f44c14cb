//! The registry of schemas: which message, use and enum has which name. Hands out references and collects what they refer
//! to; `message.rs` describes that, and may refer to more.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use chassis_transcode::Form;
use prost_reflect::{EnumDescriptor, MessageDescriptor};
use serde_json::{Value, json};

use super::choice;

/// Names that the languages of clients have themselves. A schema of that name would be taken for it, or it for the schema.
const TAKEN: [&str; 8] = ["Blob", "Date", "Error", "Event", "File", "Object", "Request", "Response"];

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
    /// The fields that do not come in the body, because the path has them.
    pub hidden: Vec<String>,
}

/// The schemas that the operations refer to, under names that are unique.
#[derive(Default)]
pub(super) struct Schemas {
    names: BTreeMap<(String, Use), String>,
    choices: BTreeMap<(String, bool), String>,
    /// `null` for a schema that is referred to and not described yet.
    written: BTreeMap<String, Value>,
    undescribed: VecDeque<Undescribed>,
    records: BTreeSet<String>,
}

impl Schemas {
    /// `records`: the names of the messages that show records of ours.
    pub(super) fn new(records: BTreeSet<String>) -> Self {
        Self { records, ..Self::default() }
    }

    /// Whether the message shows a record of ours, so that its `id` is one that we made.
    pub(super) fn is_record(&self, message: &MessageDescriptor) -> bool {
        self.records.contains(message.full_name())
    }

    /// Sets a schema by its name.
    pub(super) fn add(&mut self, name: &str, schema: Value) {
        self.written.insert(name.to_owned(), schema);
    }

    /// A reference to a schema that is set by its name.
    pub(super) fn shared(&mut self, name: &str, schema: impl FnOnce() -> Value) -> Value {
        self.written.entry(name.to_owned()).or_insert_with(schema);
        reference(name)
    }

    /// A reference to the schema of a message. The first one takes the name and leaves the message to be described, so
    /// that a message may contain itself.
    pub(super) fn refer(&mut self, message: &MessageDescriptor, usage: Use) -> Value {
        self.refer_without(message, usage, Vec::new())
    }

    /// As `refer`, without some fields. Such a message is the request of one operation only.
    pub(super) fn refer_without(
        &mut self,
        message: &MessageDescriptor,
        usage: Use,
        hidden: Vec<String>,
    ) -> Value {
        let key = (message.full_name().to_owned(), usage);
        if let Some(name) = self.names.get(&key) {
            return reference(name);
        }
        let name = self.free_name(&name_of(message, usage), message.package_name());
        self.written.insert(name.clone(), Value::Null);
        self.names.insert(key, name.clone());
        let answer = reference(&name);
        self.undescribed.push_back(Undescribed { name, message: message.clone(), usage, hidden });
        answer
    }

    /// A reference to the schema of an enum; `or_empty` with the empty text besides.
    pub(super) fn refer_choice(&mut self, kind: &EnumDescriptor, or_empty: bool) -> Value {
        let key = (kind.full_name().to_owned(), or_empty);
        if let Some(name) = self.choices.get(&key) {
            return reference(name);
        }
        let wanted = format!("{}{}", kind.name(), if or_empty { "OrEmpty" } else { "" });
        let name = self.free_name(&wanted, kind.package_name());
        self.written.insert(name.clone(), choice::describe(kind, or_empty));
        self.choices.insert(key, name.clone());
        reference(&name)
    }

    /// The next message to be described; `None` when every reference leads to a schema.
    pub(super) fn next_undescribed(&mut self) -> Option<Undescribed> {
        self.undescribed.pop_front()
    }

    pub(super) fn into_components(self) -> BTreeMap<String, Value> {
        self.written
    }

    /// The name, with the area before it where another area has it already.
    fn free_name(&self, wanted: &str, package: &str) -> String {
        if !self.written.contains_key(wanted) {
            return wanted.to_owned();
        }
        let mut chars = package.split('.').nth(1).unwrap_or_default().chars();
        let area: String = chars.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(chars).collect();
        format!("{area}{wanted}")
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// The message's own name, with the use where a request needs another shape. What a message is called for (`DealInput`,
/// `DealPatch`, `MoveDealRequest`) is not said twice.
fn name_of(message: &MessageDescriptor, usage: Use) -> String {
    let own = message.name();
    let stem = ["Input", "Patch", "Request"].into_iter().find_map(|end| own.strip_suffix(end)).unwrap_or(own);
    match usage {
        Use::Create if own.ends_with("Patch") => own.to_owned(),
        Use::Create => format!("{stem}Input"),
        Use::Patch | Use::NonEmptyPatch => format!("{stem}Patch"),
        Use::Wrapped => format!("{stem}Fields"),
        // Where `data` is the whole message, the envelope has its name.
        Use::Response if Form::of(message) == Form::Whole && own.ends_with("Response") => {
            format!("{}Data", own.trim_end_matches("Response"))
        }
        Use::Response if TAKEN.contains(&own) => format!("{own}Record"),
        Use::Response | Use::Meta | Use::Envelope => own.to_owned(),
    }
}
