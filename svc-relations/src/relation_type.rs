//! The type of a client or supplier as text: how `relation.type` stores it, and how filters and events name it. It is
//! a module of its own because links check the types of the clients that they connect, and clients list their links.

use proto::relations::RelationType;

/// A record without a type is stored as a person.
pub(crate) fn name(kind: RelationType) -> &'static str {
    match kind {
        RelationType::Company => "company",
        RelationType::Private | RelationType::Unspecified => "private",
    }
}

pub(crate) fn from_name(text: &str) -> Option<RelationType> {
    [RelationType::Company, RelationType::Private].into_iter().find(|kind| name(*kind) == text)
}

/// Decodes a value of the column.
pub(crate) fn decode(text: &str) -> Result<RelationType, chassis_base::stored::Undecodable> {
    chassis_base::stored::decode("relation.type", text, from_name)
}
