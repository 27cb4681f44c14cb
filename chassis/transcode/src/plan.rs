//! Lookup tables of a message, built from its descriptor once: the number, name, kind and JSON shape of each field.
//! Shared by requests and responses.

use std::collections::HashMap;
use std::sync::Arc;

use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind as ProtoKind, MessageDescriptor};
use proto::api::Format;

use super::text::put_string;

/// The tables are indexed by field number, so a high number would make them large.
const MAX_NUMBER: u32 = 2000;

const TIMESTAMP: &str = "google.protobuf.Timestamp";
const FIELD_MASK: &str = "google.protobuf.FieldMask";
const SIGNED_BODY: &str = "admin.api.v1.SignedBody";

/// Why a message has no JSON form, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub(super) String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Direction {
    Request,
    Response,
}

#[derive(Debug)]
pub(crate) struct Shape {
    /// In the order of declaration, which is the order of the JSON.
    pub fields: Vec<Field>,
    /// Indexes into `fields` in the order of numbers, which is the order of canonical wire bytes.
    pub by_number: Vec<usize>,
    /// Index into `fields` for each number.
    numbers: Vec<Option<usize>>,
    names: HashMap<String, usize>,
    /// See `MessagePolicy.wrapper`; empty for none.
    pub wrapper: String,
}

#[derive(Debug)]
pub(crate) struct Field {
    pub name: String,
    pub number: u32,
    pub kind: Kind,
    pub repeated: bool,
    /// Whether a scalar distinguishes absent from empty.
    pub optional: bool,
    /// `{"name":` for the first field, `,"name":` for every later field.
    pub json_key: Vec<u8>,
    /// The JSON of an absent field in a response.
    pub absent: Vec<u8>,
    /// Whether an absent field is left out with its name.
    pub left_out: bool,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Text,
    Decimal,
    /// Only in requests, where it may also be a JSON number; a response renders it as text.
    Percentage,
    Json,
    Bool,
    Int32,
    Int64,
    Uint32,
    Uint64,
    Enum(Arc<Names>),
    Bytes,
    Timestamp,
    Mask,
    /// A body that is passed on unchanged; always the whole body of a request.
    Signed,
    /// Only in requests: a text, or a JSON object that becomes its text.
    Document,
    Message(Arc<Shape>),
}

/// The values of an enum as integrators see them.
#[derive(Debug)]
pub(crate) struct Names {
    /// Quoted, by number. Value 0 has no name, because it means unspecified.
    quoted: Vec<Option<Vec<u8>>>,
    numbers: HashMap<String, i32>,
    /// All names for an error message: `a, b, c`.
    pub list: String,
}

/// The shapes that are made so far. Most operations are about the same few records, so what is inside a message is made once
/// and shared.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    inner: HashMap<(String, Direction), Arc<Shape>>,
    names: HashMap<String, Arc<Names>>,
    /// The messages that enclose the one that is being made: a message inside itself would have no finite shape.
    outer: Vec<String>,
}

impl Shapes {
    pub(crate) fn of(
        &mut self,
        message: &MessageDescriptor,
        direction: Direction,
    ) -> Result<Arc<Shape>, Refusal> {
        self.outer.clear();
        Shape::of(message, direction, self).map(Arc::new)
    }

    fn inside(&mut self, message: &MessageDescriptor, direction: Direction) -> Result<Arc<Shape>, Refusal> {
        let key = (message.full_name().to_owned(), direction);
        if let Some(shape) = self.inner.get(&key) {
            return Ok(Arc::clone(shape));
        }
        let shape = Arc::new(Shape::of(message, direction, self)?);
        self.inner.insert(key, Arc::clone(&shape));
        Ok(shape)
    }

    fn names(&mut self, descriptor: &EnumDescriptor) -> Result<Arc<Names>, &'static str> {
        if let Some(names) = self.names.get(descriptor.full_name()) {
            return Ok(Arc::clone(names));
        }
        let names = Arc::new(Names::of(descriptor)?);
        self.names.insert(descriptor.full_name().to_owned(), Arc::clone(&names));
        Ok(names)
    }
}

/// The fields of a message in the order of declaration: the descriptor lists them by number, and the last part of the path is
/// the order.
pub(crate) fn declared(message: &MessageDescriptor) -> Vec<FieldDescriptor> {
    let mut fields: Vec<FieldDescriptor> = message.fields().collect();
    fields.sort_by_key(|field| field.path().last().copied());
    fields
}

impl Shape {
    fn of(message: &MessageDescriptor, direction: Direction, shapes: &mut Shapes) -> Result<Self, Refusal> {
        let full_name = message.full_name();
        if shapes.outer.iter().any(|name| name == full_name) {
            return Err(Refusal(format!(
                "{full_name} contains itself; give the inner one a message of its own"
            )));
        }
        shapes.outer.push(full_name.to_owned());
        let fields = declared(message)
            .iter()
            .enumerate()
            .map(|(index, field)| Field::of(field, index, direction, shapes))
            .collect::<Result<Vec<_>, _>>()?;
        shapes.outer.pop();
        Self::indexed(fields, proto::policy::message(message).wrapper, full_name)
    }

    fn indexed(fields: Vec<Field>, wrapper: String, full_name: &str) -> Result<Self, Refusal> {
        let highest = fields.iter().map(|field| field.number as usize).max().unwrap_or(0);
        let mut numbers = vec![None; highest + 1];
        let mut names = HashMap::new();
        for (index, field) in fields.iter().enumerate() {
            numbers[field.number as usize] = Some(index);
            names.insert(field.name.clone(), index);
        }
        if names.contains_key(&wrapper) {
            return Err(Refusal(format!(
                "{full_name} has a field with the name of its wrapper `{wrapper}`; rename one of them"
            )));
        }
        let by_number = numbers.iter().flatten().copied().collect();
        Ok(Self { fields, by_number, numbers, names, wrapper })
    }

    pub(crate) fn index_of_number(&self, number: u32) -> Option<usize> {
        self.numbers.get(number as usize).copied().flatten()
    }

    pub(crate) fn index_of_name(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Field> {
        self.index_of_name(name).map(|index| &self.fields[index])
    }

    /// The JSON of the message when all its fields are absent.
    pub(crate) fn empty_json(&self) -> Vec<u8> {
        let mut json = Vec::new();
        for field in self.fields.iter().filter(|field| !field.left_out) {
            json.extend_from_slice(&field.json_key);
            json.extend_from_slice(&field.absent);
        }
        if self.fields.is_empty() {
            json.push(b'{');
        }
        json.push(b'}');
        json
    }
}

impl Field {
    fn of(
        field: &FieldDescriptor,
        index: usize,
        direction: Direction,
        shapes: &mut Shapes,
    ) -> Result<Self, Refusal> {
        let refuse = |why: &str| Err(Refusal(format!("{}: {why}", field.full_name())));
        let policy = proto::policy::field(field);
        if field.is_map() {
            return refuse("maps have no JSON shape here; use a repeated message or FORMAT_JSON");
        }
        if field.containing_oneof().is_some_and(|oneof| !oneof.is_synthetic()) {
            return refuse("oneofs have no JSON shape here; use optional fields");
        }
        if field.number() > MAX_NUMBER {
            return refuse(&format!("use a field number up to {MAX_NUMBER}"));
        }
        let kind = match Kind::of(field, policy.format(), direction, shapes)? {
            Ok(kind) => kind,
            Err(why) => return refuse(why),
        };
        let repeated = field.is_list();
        let optional = field.field_descriptor_proto().proto3_optional();
        let absent = match &kind {
            _ if repeated => b"[]".to_vec(),
            _ if optional || policy.nullable => b"null".to_vec(),
            Kind::Decimal => b"null".to_vec(),
            Kind::Json | Kind::Mask | Kind::Signed => b"{}".to_vec(),
            Kind::Bool => b"false".to_vec(),
            Kind::Int32 | Kind::Int64 | Kind::Uint32 | Kind::Uint64 => b"0".to_vec(),
            Kind::Text
            | Kind::Percentage
            | Kind::Document
            | Kind::Bytes
            | Kind::Enum(_)
            | Kind::Timestamp => b"\"\"".to_vec(),
            Kind::Message(shape) => shape.empty_json(),
        };
        if policy.left_out && index == 0 {
            return refuse("the first field is never left out; declare it later");
        }
        let mut json_key = vec![if index == 0 { b'{' } else { b',' }];
        put_string(field.name(), &mut json_key);
        json_key.push(b':');
        Ok(Self {
            name: field.name().to_owned(),
            number: field.number(),
            kind,
            repeated,
            optional,
            json_key,
            absent,
            left_out: policy.left_out,
        })
    }

    /// The shape of a single message.
    pub(crate) fn inner(&self) -> Option<&Shape> {
        match &self.kind {
            Kind::Message(shape) if !self.repeated => Some(shape),
            _ => None,
        }
    }

    /// Whether an update may set the field to `null`.
    pub(crate) fn can_be_emptied(&self) -> bool {
        self.repeated || self.optional || !self.kind.is_varint()
    }
}

impl Kind {
    /// The inner error is a reason to which the caller adds the field's name.
    fn of(
        field: &FieldDescriptor,
        format: Format,
        direction: Direction,
        shapes: &mut Shapes,
    ) -> Result<Result<Self, &'static str>, Refusal> {
        Ok(Ok(match field.kind() {
            ProtoKind::String => match format {
                Format::Decimal => Self::Decimal,
                Format::Json => Self::Json,
                Format::Percentage if direction == Direction::Request => Self::Percentage,
                Format::Document if direction == Direction::Request => Self::Document,
                Format::Unspecified
                | Format::Date
                | Format::DateOrTime
                | Format::Percentage
                | Format::Document => Self::Text,
            },
            _ if format != Format::Unspecified => return Ok(Err("only a string can have a format")),
            ProtoKind::Bool => Self::Bool,
            ProtoKind::Int32 => Self::Int32,
            ProtoKind::Int64 => Self::Int64,
            ProtoKind::Uint32 => Self::Uint32,
            ProtoKind::Uint64 => Self::Uint64,
            ProtoKind::Enum(names) => match shapes.names(&names) {
                Ok(names) => Self::Enum(names),
                Err(why) => return Ok(Err(why)),
            },
            // In a request they are the body itself, or the content of an upload.
            ProtoKind::Bytes if direction == Direction::Response || shapes.outer.len() == 1 => Self::Bytes,
            ProtoKind::Message(inner) => match (inner.full_name(), direction) {
                (TIMESTAMP, _) => Self::Timestamp,
                (FIELD_MASK, Direction::Request) if !field.is_list() && shapes.outer.len() == 1 => Self::Mask,
                (SIGNED_BODY, Direction::Request) if !field.is_list() && shapes.outer.len() == 1 => {
                    Self::Signed
                }
                (name, _) if name.starts_with("google.") => {
                    return Ok(Err("this message of google.protobuf has no JSON shape here"));
                }
                _ => Self::Message(shapes.inside(&inner, direction)?),
            },
            ProtoKind::Float | ProtoKind::Double => {
                return Ok(Err("binary floats lose digits; use a string with FORMAT_DECIMAL"));
            }
            ProtoKind::Bytes => return Ok(Err("bytes cannot be part of a JSON body; use a string")),
            _ => return Ok(Err("use int32, int64, uint32 or uint64")),
        }))
    }

    /// Whether the value is encoded as a varint.
    pub(crate) fn is_varint(&self) -> bool {
        matches!(self, Self::Bool | Self::Int32 | Self::Int64 | Self::Uint32 | Self::Uint64 | Self::Enum(_))
    }

    /// Whether the value is a message on the wire, so that several occurrences of it merge.
    pub(crate) fn is_message(&self) -> bool {
        matches!(self, Self::Message(_) | Self::Timestamp | Self::Mask | Self::Signed)
    }
}

impl Names {
    fn of(descriptor: &EnumDescriptor) -> Result<Self, &'static str> {
        let mut names = Self { quoted: Vec::new(), numbers: HashMap::new(), list: String::new() };
        for value in descriptor.values().filter(|value| value.number() != 0) {
            let Some(index) = usize::try_from(value.number()).ok().filter(|index| *index <= 1000) else {
                return Err("its enum has a value that is negative or above 1000; renumber it");
            };
            let name = proto::value_name(descriptor, value.name());
            let mut quoted = Vec::new();
            put_string(&name, &mut quoted);
            if names.quoted.len() <= index {
                names.quoted.resize(index + 1, None);
            }
            names.quoted[index].get_or_insert(quoted);
            if !names.list.is_empty() {
                names.list.push_str(", ");
            }
            names.list.push_str(&name);
            names.numbers.insert(name, value.number());
        }
        Ok(names)
    }

    pub(crate) fn number(&self, name: &str) -> Option<i32> {
        self.numbers.get(name).copied()
    }

    /// The name in quotes; `None` for 0 and for a value that this build does not define.
    pub(crate) fn quoted(&self, wire: u64) -> Option<&[u8]> {
        self.quoted.get(usize::try_from(wire).ok()?)?.as_deref()
    }
}
