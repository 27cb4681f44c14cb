//! Enums as schemas of their own, so that a client that is generated has one type for each, wherever it is used.

use prost_reflect::EnumDescriptor;
use proto::policy;
use serde_json::{Value, json};

use super::example;
use super::text::flowing;

/// The schema of an enum. `or_empty`: also the empty text, which is how a response shows an enum without a value.
pub(super) fn describe(kind: &EnumDescriptor, or_empty: bool) -> Value {
    let mut choices = example::choices(kind);
    if or_empty {
        choices.push(String::new());
    }
    let mut schema = json!({"type": "string", "enum": choices});
    let text = text(kind);
    if !text.is_empty() {
        schema["description"] = json!(text);
    }
    schema
}

/// The comment above it, and those above its values.
fn text(kind: &EnumDescriptor) -> String {
    let file = kind.parent_file();
    let comment = |path: &[i32]| flowing(&policy::comment(file.file_descriptor_proto(), path));
    let values = kind.values().filter(|value| value.number() != 0);
    let lines: Vec<String> = values
        .map(|value| (proto::value_name(kind, value.name()), comment(value.path())))
        .filter(|(_, text)| !text.is_empty())
        .map(|(name, text)| format!("- `{name}`: {text}"))
        .collect();
    [comment(kind.path()), lines.join("\n")]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n")
}
