use prost_reflect::EnumDescriptor;

/// The name of an enum value as integrators see it: `RELATION_TYPE_COMPANY` of `RelationType` is `company`.
pub fn value_name(kind: &EnumDescriptor, value: &str) -> String {
    let mut prefix = String::new();
    for (index, letter) in kind.name().char_indices() {
        if letter.is_uppercase() && index > 0 {
            prefix.push('_');
        }
        prefix.push(letter.to_ascii_uppercase());
    }
    prefix.push('_');
    value.strip_prefix(&prefix).unwrap_or(value).to_ascii_lowercase()
}
