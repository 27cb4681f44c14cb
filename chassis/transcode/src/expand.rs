//! References that a GET can expand: which they are, and what they refer to in a response.

use prost_reflect::{Kind, MessageDescriptor, MethodDescriptor};

use super::query::pairs;
use super::render::{Form, RenderError, ResponsePlan, last_at};
use super::wire::Value;

/// The parameter that asks for records that an answer refers to.
pub const EXPAND: &str = "expand";
/// What is left out of the name of a field that refers to a record.
const SUFFIX: &str = "_id";

/// A reference in the records of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expansion {
    /// What integrators call it: `client` for the field `client_id`.
    pub name: String,
    /// The kind of the record that it refers to.
    pub kind: String,
    /// The numbers of the fields that lead to it.
    path: Vec<u32>,
}

impl Expansion {
    /// The names that a query asks for, in order.
    pub fn asked(query: Option<&str>) -> Vec<String> {
        let pairs = pairs(query.unwrap_or_default()).flatten().filter(|(name, _)| name == EXPAND);
        let values: Vec<_> = pairs.map(|(_, value)| value).collect();
        let names = values.iter().flat_map(|value| value.split(',')).map(str::trim);
        names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    /// Those of the records that a method answers with.
    pub(crate) fn all(method: &MethodDescriptor) -> Vec<Self> {
        match Form::data(&method.output()).map(|data| data.kind()) {
            Some(Kind::Message(record)) => Self::of_record(&record),
            _ => Vec::new(),
        }
    }

    /// Those of a record: in its own fields, and in those of the messages in it.
    pub fn of_record(record: &MessageDescriptor) -> Vec<Self> {
        let mut found = Vec::new();
        collect(record, &[], &mut found);
        found
    }

    /// What each record of the response refers to, in order; an empty text where it refers to nothing.
    pub fn ids<'a>(&self, plan: &ResponsePlan, wire: &'a [u8]) -> Result<Vec<&'a str>, RenderError> {
        let id = |record: &'a [u8]| match last_at(record, &self.path) {
            Some(Value::Bytes(id)) => std::str::from_utf8(id).unwrap_or_default(),
            _ => "",
        };
        Ok(plan.records(wire)?.into_iter().map(id).collect())
    }
}

fn collect(message: &MessageDescriptor, above: &[u32], found: &mut Vec<Expansion>) {
    for field in message.fields().filter(|field| !field.is_list() && !field.is_map()) {
        let path = [above, &[field.number()]].concat();
        match field.kind() {
            Kind::String => {
                let kind = proto::policy::field(&field).refers_to;
                if let Some(name) = field.name().strip_suffix(SUFFIX).filter(|_| !kind.is_empty()) {
                    found.push(Expansion { name: name.to_owned(), kind, path });
                }
            }
            // One level: `meta` of a record has references too.
            Kind::Message(inner) if above.is_empty() => collect(&inner, &path, found),
            _ => {}
        }
    }
}
