//! Names and texts as integrators see them.

use prost_reflect::EnumDescriptor;
use prost_types::FileDescriptorProto;

/// The name of an enum value as integrators see it: `RELATION_TYPE_COMPANY` of `RelationType` is `company`.
pub fn value_name(kind: &EnumDescriptor, value: &str) -> String {
    let prefix = snake(kind.name()).to_ascii_uppercase() + "_";
    value.strip_prefix(&prefix).unwrap_or(value).to_ascii_lowercase()
}

/// `CustomField` is `custom_field`: how prost names modules, and the contract fields.
pub fn snake(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

/// The comment above a declaration, without the space that follows each `//`.
pub fn comment(file: &FileDescriptorProto, path: &[i32]) -> String {
    let locations = file.source_code_info.iter().flat_map(|info| &info.location);
    let text =
        locations.filter(|l| l.path == path).find_map(|l| l.leading_comments.as_deref()).unwrap_or_default();
    let lines = text.lines().map(|line| line.strip_prefix(' ').unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}
