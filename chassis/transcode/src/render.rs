//! Responses: from protobuf wire bytes to the JSON of the envelope in one pass, without decoding a message in between.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::{FieldDescriptor, MessageDescriptor};

use super::json;
use super::numbers::is_number;
use super::plan::{Direction, Field, Kind, Refusal, Shape, Shapes, declared};
use super::text::{put_signed, put_string, put_time, put_unsigned};
use super::wire::{Reader, Value, WireError};

/// Free JSON arrives with at most 32 levels, and a service may nest it in a few of its own.
const MAX_STORED_DEPTH: usize = 100;

/// Why the response of a service cannot be rendered; always an internal error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    #[error("the response is not a protobuf message")]
    Wire(#[from] WireError),
    #[error("{field} has another type on the wire")]
    WireType { field: String },
    #[error("{field} is not UTF-8")]
    Text { field: String },
    #[error("{field} is not a JSON number")]
    Number { field: String },
    #[error("{field} is not JSON")]
    Json { field: String },
    #[error("{field} is not a time between the years 1 and 9999")]
    Time { field: String },
}

/// How one response message becomes `{"data": …, "meta": …}`.
#[derive(Clone, Debug)]
pub struct ResponsePlan {
    pub(crate) envelope: Arc<Shape>,
    pub(crate) has_meta: bool,
    /// Whether `data` is the whole message, because no single field of it is.
    pub(crate) is_whole: bool,
    /// The field numbers that lead to the id of the record in the response.
    data_id: Option<[u32; 2]>,
    /// The field numbers that lead to its version: `version` of the record or of its `meta`.
    data_version: Option<Vec<u32>>,
}

impl ResponsePlan {
    /// `success` is the HTTP status. A response has no body exactly when it is 204.
    pub(crate) fn of(
        message: &MessageDescriptor,
        success: u32,
        shapes: &mut Shapes,
    ) -> Result<Self, Refusal> {
        let mut envelope = shapes.of(message, Direction::Response)?;
        let form = Form::of(message);
        match (&form, success) {
            (Form::Nothing, 204) | (Form::Field { .. } | Form::Whole, 200 | 201) => {}
            (_, 204) => return Err(Refusal("a response without a body (204) has no fields".to_owned())),
            _ => {
                return Err(Refusal(format!(
                    "{} must have the field `data` and may have `meta` after it, or one field, or several that are neither; a response without a body has success 204",
                    message.full_name()
                )));
            }
        }
        let (is_whole, has_meta) = (form == Form::Whole, form == Form::Field { has_meta: true });
        if let (Form::Field { .. }, Some(shape)) = (&form, Arc::get_mut(&mut envelope))
            && let Some(data) = shape.fields.first_mut()
        {
            data.json_key = b"{\"data\":".to_vec();
        }
        let record = envelope.fields.first().filter(|_| !is_whole).and_then(|data| match &data.kind {
            Kind::Message(shape) if !data.repeated => Some((data.number, shape)),
            _ => None,
        });
        let data_id = record.and_then(|(data, shape)| {
            let id = shape.find("id").filter(|id| matches!(id.kind, Kind::Text) && !id.repeated)?;
            Some([data, id.number])
        });
        let data_version = record.and_then(|(data, shape)| Some([vec![data], version(shape)?].concat()));
        Ok(Self { envelope, has_meta, is_whole, data_id, data_version })
    }

    /// For programs: the message itself, without an envelope.
    pub fn of_message(message: &MessageDescriptor) -> Result<Self, Refusal> {
        let envelope = Shapes::default().of(message, Direction::Response)?;
        Ok(Self::without_envelope(envelope))
    }

    /// For programs: the message in `data`, which it shares with this plan. `None` if there is no message.
    pub(crate) fn of_data(&self) -> Option<Self> {
        if self.is_whole {
            return Some(Self::without_envelope(Arc::clone(&self.envelope)));
        }
        match &self.envelope.fields.first()?.kind {
            Kind::Message(shape) => Some(Self::without_envelope(Arc::clone(shape))),
            _ => None,
        }
    }

    /// What `data` shows of a record.
    pub(crate) fn shape_of_data(&self) -> Option<Arc<Shape>> {
        self.of_data().map(|plan| plan.envelope)
    }

    fn without_envelope(shape: Arc<Shape>) -> Self {
        Self { envelope: shape, has_meta: true, is_whole: false, data_id: None, data_version: None }
    }

    /// Whether a successful response has a body.
    pub fn has_body(&self) -> bool {
        !self.envelope.fields.is_empty()
    }

    pub fn has_data_id(&self) -> bool {
        self.data_id.is_some()
    }

    /// Appends the envelope. On an error `out` is unchanged.
    pub fn render(&self, wire: &[u8], out: &mut Vec<u8>) -> Result<(), RenderError> {
        if !self.has_body() {
            return Ok(());
        }
        let start = out.len();
        if self.is_whole {
            out.extend_from_slice(b"{\"data\":");
        }
        let result = Renderer::new(out).message(&self.envelope, Slot::One(Value::Bytes(wire)));
        if result.is_err() {
            out.truncate(start);
        } else if !self.has_meta {
            if !self.is_whole {
                out.pop();
            }
            out.extend_from_slice(b",\"meta\":{}}");
        }
        result
    }

    /// The id of the record in the response, for the header `Location`.
    pub fn data_id<'a>(&self, wire: &'a [u8]) -> Option<&'a str> {
        let Value::Bytes(id) = last_at(wire, self.data_id.as_ref()?)? else { return None };
        std::str::from_utf8(id).ok().filter(|id| !id.is_empty())
    }

    /// Whether responses show the version of a record.
    pub fn has_version(&self) -> bool {
        self.data_version.is_some()
    }

    /// The version of the record in the response, for the header `ETag`.
    pub fn data_version(&self, wire: &[u8]) -> Option<i64> {
        let Value::Varint(version) = last_at(wire, self.data_version.as_ref()?)? else { return None };
        Some(version.cast_signed())
    }
}

/// The form of a response message: what of it is `data`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// It has no fields, and the response no body.
    Nothing,
    /// Its first field, which is called `data` or is the only one.
    Field { has_meta: bool },
    /// All of its fields.
    Whole,
    /// None that an envelope could have.
    Unclear,
}

impl Form {
    pub fn of(message: &MessageDescriptor) -> Self {
        let names: Vec<String> = declared(message).iter().map(|field| field.name().to_owned()).collect();
        let is_reserved = |name: &String| name == "data" || name == "meta";
        match names.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            [] => Self::Nothing,
            ["data", "meta"] => Self::Field { has_meta: true },
            [one] if *one != "meta" => Self::Field { has_meta: false },
            _ if names.iter().any(is_reserved) => Self::Unclear,
            _ => Self::Whole,
        }
    }

    /// The field of the message that is `data`.
    pub fn data(message: &MessageDescriptor) -> Option<FieldDescriptor> {
        matches!(Self::of(message), Self::Field { .. })
            .then(|| declared(message).into_iter().next())
            .flatten()
    }
}

/// The numbers of `version`, or of `meta` and its `version`.
fn version(shape: &Shape) -> Option<Vec<u32>> {
    let is_version = |field: &&Field| matches!(field.kind, Kind::Int64) && !field.repeated;
    if let Some(field) = shape.find("version").filter(is_version) {
        return Some(vec![field.number]);
    }
    let meta = shape.find("meta")?;
    let Kind::Message(of_meta) = &meta.kind else { return None };
    Some(vec![meta.number, of_meta.find("version").filter(is_version)?.number])
}

/// The last value of the field that these numbers lead to. A message may come in parts, which merge.
pub(crate) fn last_at<'a>(message: &'a [u8], path: &[u32]) -> Option<Value<'a>> {
    let (number, inner) = path.split_first()?;
    let (mut found, mut fields) = (None, Reader::new(message));
    while let Some((have, value)) = fields.next().ok()? {
        match value {
            _ if have != *number => {}
            Value::Bytes(part) if !inner.is_empty() => found = last_at(part, inner).or(found),
            value => found = Some(value).filter(|_| inner.is_empty()).or(found),
        }
    }
    found
}

/// The encoded value of one field of the message that is being written.
#[derive(Clone, Copy)]
pub(crate) enum Slot<'a> {
    Absent,
    One(Value<'a>),
    /// Several occurrences: the entries of a list, or the parts of a message that merge. Indexes into `links`.
    Many {
        first: usize,
        last: usize,
    },
}

#[derive(Clone, Copy)]
struct Link<'a> {
    value: Value<'a>,
    next: Option<usize>,
}

/// `slots` and `links` are stacks: a message pushes its entries and pops them when it is written. This avoids an
/// allocation for each message and each field.
pub(crate) struct Renderer<'a, 'o> {
    out: &'o mut Vec<u8>,
    slots: Vec<Slot<'a>>,
    links: Vec<Link<'a>>,
}

impl<'a, 'o> Renderer<'a, 'o> {
    pub(crate) fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out, slots: Vec::with_capacity(64), links: Vec::new() }
    }

    pub(crate) fn message(&mut self, shape: &Shape, content: Slot<'a>) -> Result<(), RenderError> {
        let (base, links) = (self.slots.len(), self.links.len());
        self.scan_all(shape, base, content)?;
        for (index, field) in shape.fields.iter().enumerate() {
            let slot = self.slots[base + index];
            if field.left_out && matches!(slot, Slot::Absent) {
                continue;
            }
            self.out.extend_from_slice(&field.json_key);
            self.field(field, slot)?;
        }
        if shape.fields.is_empty() {
            self.out.push(b'{');
        }
        self.out.push(b'}');
        self.slots.truncate(base);
        self.links.truncate(links);
        Ok(())
    }

    /// Writes the leaves of a message one after the other: messages in it are written as their own leaves, and everything
    /// else as its JSON, each followed by `end`, which gets the place where the leaf begins.
    pub(crate) fn leaves(
        &mut self,
        shape: &Shape,
        content: Slot<'a>,
        end: &mut impl FnMut(usize, &mut Vec<u8>),
    ) -> Result<(), RenderError> {
        let (base, links) = (self.slots.len(), self.links.len());
        self.scan_all(shape, base, content)?;
        for (index, field) in shape.fields.iter().enumerate() {
            let slot = self.slots[base + index];
            if let Some(inner) = field.inner() {
                self.leaves(inner, slot, end)?;
                continue;
            }
            let start = self.out.len();
            self.field(field, slot)?;
            end(start, self.out);
        }
        self.slots.truncate(base);
        self.links.truncate(links);
        Ok(())
    }

    /// Finds the value of each field.
    fn scan_all(&mut self, shape: &Shape, base: usize, content: Slot<'a>) -> Result<(), RenderError> {
        self.slots.resize(base + shape.fields.len(), Slot::Absent);
        let mut part = self.first(content);
        while let Some((value, next)) = part {
            // `record` accepts only bytes for a message.
            if let Value::Bytes(bytes) = value {
                self.scan(shape, base, bytes)?;
            }
            part = next.map(|next| self.link(next));
        }
        Ok(())
    }

    fn first(&self, slot: Slot<'a>) -> Option<(Value<'a>, Option<usize>)> {
        match slot {
            Slot::Absent => None,
            Slot::One(value) => Some((value, None)),
            Slot::Many { first, .. } => Some(self.link(first)),
        }
    }

    fn link(&self, index: usize) -> (Value<'a>, Option<usize>) {
        let Link { value, next } = self.links[index];
        (value, next)
    }

    fn scan(&mut self, shape: &Shape, base: usize, bytes: &'a [u8]) -> Result<(), RenderError> {
        let mut reader = Reader::new(bytes);
        while let Some((number, value)) = reader.next()? {
            if let Some(index) = shape.index_of_number(number) {
                self.record(&shape.fields[index], base + index, value)?;
            }
        }
        Ok(())
    }

    fn record(&mut self, field: &Field, slot: usize, value: Value<'a>) -> Result<(), RenderError> {
        let fits = match value {
            Value::Varint(_) => field.kind.is_varint(),
            Value::Bytes(_) => !field.kind.is_varint() || field.repeated,
            Value::Fixed => false,
        };
        if !fits {
            return Err(RenderError::WireType { field: field.name.clone() });
        }
        let added = self.links.len();
        self.slots[slot] = match self.slots[slot] {
            // The last occurrence of a single value counts.
            _ if !field.repeated && !field.kind.is_message() => Slot::One(value),
            Slot::Absent => Slot::One(value),
            Slot::One(before) => {
                self.links.push(Link { value: before, next: Some(added + 1) });
                self.links.push(Link { value, next: None });
                Slot::Many { first: added, last: added + 1 }
            }
            Slot::Many { first, last } => {
                self.links[last].next = Some(added);
                self.links.push(Link { value, next: None });
                Slot::Many { first, last: added }
            }
        };
        Ok(())
    }

    pub(crate) fn field(&mut self, field: &Field, slot: Slot<'a>) -> Result<(), RenderError> {
        match slot {
            Slot::Absent => self.out.extend_from_slice(&field.absent),
            _ if field.repeated => return self.list(field, slot),
            _ if field.kind.is_message() => return self.nested(field, slot),
            Slot::One(value) => return self.scalar(field, value, &field.absent),
            // Only lists and messages have several occurrences.
            Slot::Many { .. } => {}
        }
        Ok(())
    }

    fn list(&mut self, field: &Field, slot: Slot<'a>) -> Result<(), RenderError> {
        self.out.push(b'[');
        let start = self.out.len();
        let mut item = self.first(slot);
        while let Some((value, next)) = item {
            match value {
                Value::Bytes(packed) if field.kind.is_varint() => {
                    let mut reader = Reader::new(packed);
                    while let Some(number) = reader.next_packed()? {
                        self.separate(start);
                        self.scalar(field, Value::Varint(number), b"\"\"")?;
                    }
                }
                _ => {
                    self.separate(start);
                    if field.kind.is_message() {
                        self.nested(field, Slot::One(value))?;
                    } else {
                        let empty: &[u8] =
                            if matches!(field.kind, Kind::Enum(_)) { b"\"\"" } else { b"null" };
                        self.scalar(field, value, empty)?;
                    }
                }
            }
            item = next.map(|next| self.link(next));
        }
        self.out.push(b']');
        Ok(())
    }

    fn separate(&mut self, start: usize) {
        if self.out.len() > start {
            self.out.push(b',');
        }
    }

    fn nested(&mut self, field: &Field, slot: Slot<'a>) -> Result<(), RenderError> {
        match &field.kind {
            Kind::Message(shape) => self.message(shape, slot),
            _ => self.time(field, slot),
        }
    }

    fn time(&mut self, field: &Field, slot: Slot<'a>) -> Result<(), RenderError> {
        let (mut seconds, mut nanos) = (0, 0);
        let mut part = self.first(slot);
        while let Some((value, next)) = part {
            let Value::Bytes(bytes) = value else { break };
            let mut reader = Reader::new(bytes);
            while let Some((number, value)) = reader.next()? {
                match (number, value) {
                    (1, Value::Varint(value)) => seconds = value.cast_signed(),
                    (2, Value::Varint(value)) => nanos = low_32(value).cast_signed(),
                    (1 | 2, _) => return Err(RenderError::WireType { field: field.name.clone() }),
                    _ => {}
                }
            }
            part = next.map(|next| self.link(next));
        }
        put_time(seconds, nanos, self.out).ok_or_else(|| RenderError::Time { field: field.name.clone() })
    }

    /// `empty` is written for an enum value without a name, and for a decimal or free JSON without text.
    fn scalar(&mut self, field: &Field, value: Value<'a>, empty: &[u8]) -> Result<(), RenderError> {
        match value {
            Value::Varint(number) => self.number(&field.kind, number, empty),
            Value::Bytes(bytes) => return self.bytes(field, bytes, empty),
            Value::Fixed => {}
        }
        Ok(())
    }

    fn number(&mut self, kind: &Kind, number: u64, empty: &[u8]) {
        match kind {
            Kind::Bool => self.out.extend_from_slice(if number == 0 { b"false" } else { b"true" }),
            Kind::Int32 => put_signed(low_32(number).cast_signed().into(), self.out),
            Kind::Uint32 => put_unsigned(low_32(number).into(), self.out),
            Kind::Uint64 => put_unsigned(number, self.out),
            Kind::Enum(names) => {
                let number = u64::from(low_32(number));
                self.out.extend_from_slice(names.quoted(number).unwrap_or(empty));
            }
            _ => put_signed(number.cast_signed(), self.out),
        }
    }

    fn bytes(&mut self, field: &Field, bytes: &[u8], empty: &[u8]) -> Result<(), RenderError> {
        let name = || field.name.clone();
        if matches!(field.kind, Kind::Bytes) {
            self.out.push(b'"');
            self.out.extend_from_slice(STANDARD.encode(bytes).as_bytes());
            self.out.push(b'"');
            return Ok(());
        }
        let text = std::str::from_utf8(bytes).map_err(|_| RenderError::Text { field: name() })?;
        match field.kind {
            Kind::Decimal | Kind::Json if text.is_empty() => self.out.extend_from_slice(empty),
            Kind::Decimal if is_number(text) => self.out.extend_from_slice(bytes),
            Kind::Decimal => return Err(RenderError::Number { field: name() }),
            Kind::Json if json::parse(bytes, MAX_STORED_DEPTH).is_ok() => self.out.extend_from_slice(bytes),
            Kind::Json => return Err(RenderError::Json { field: name() }),
            _ => put_string(text, self.out),
        }
        Ok(())
    }
}

/// Protobuf truncates a longer varint when it reads a 32-bit field.
fn low_32(value: u64) -> u32 {
    let [a, b, c, d, ..] = value.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}
