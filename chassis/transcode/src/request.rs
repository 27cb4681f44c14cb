//! Requests: where each field of a request message comes from, and where a fault in it is reported.

use std::borrow::Cow;
use std::sync::Arc;

use prost_reflect::MessageDescriptor;
use proto::api::Fault;
use proto::{At, Faults};

use super::body::{Collector, Content, Encoder};
use super::expand::EXPAND;
use super::json::{self, Failure, Json};
use super::malformed::Malformed;
use super::plan::{Direction, Field, Kind, Refusal, Shape, Shapes};
use super::query;
use super::render::ResponsePlan;
use super::scalar::{Scalar, put_list};
use super::unknown::{self, Handling, Ignored, Known, Unknown};
use super::wire::{put_bytes, put_nested};

/// The deepest nesting of arrays and objects in a body.
const MAX_DEPTH: usize = 32;

/// What a request for a page of a list says of the page.
pub const PAGE: [&str; 2] = ["page", "per_page"];

/// How path, query and body fill one request message.
#[derive(Debug)]
pub struct RequestPlan {
    shape: Arc<Shape>,
    /// By the index of the field.
    sources: Vec<Source>,
    body: Target,
    has_mask: bool,
    /// For [`of_message`](Self::of_message): the index of the field whose message the mask refers to.
    masked: Option<usize>,
    needs_a_field: bool,
    /// What the answer shows of a record, which may be sent back.
    shown: Option<Arc<Shape>>,
    /// Whether the query may ask for records that the answer refers to, which is not for the service.
    pub(crate) has_expansions: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Path,
    Query,
    Body,
    Mask,
    /// The content of an upload, which follows the message.
    Stream,
    /// Nothing: the request cannot set it.
    Nothing,
}

/// The part of the request message that the body maps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    None,
    /// The request message itself, except the fields that come from the path.
    Whole,
    /// One field of the request message, by its index.
    Field(usize),
    /// One field, by its index, which gets the unchanged body instead of JSON.
    Signed(usize),
    /// One text or bytes field, by its index, which gets the unchanged body.
    Raw(usize),
}

/// A request message, and the faults of the request that it was made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// Wire bytes in canonical form: fields in the order of their numbers, defaults left out. Equal requests have equal
    /// bytes.
    pub message: Vec<u8>,
    /// Values that could not be parsed and are not in `message`. Pointers are relative to the request message.
    pub faults: Faults,
    /// Names that nobody knows.
    pub ignored: Ignored,
    /// Which fields of the body's message came from its wrapper object, by index.
    wrapped: Vec<bool>,
}

/// The location of a fault in the request as the integrator sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A JSON Pointer into the body.
    Pointer(String),
    /// The name of a query or path parameter.
    Parameter(String),
}

impl RequestPlan {
    /// `variables` are those of the path. `body` is the value in the HTTP rule: a name, `*`, or empty for no body. The content of
    /// an upload is a stream of messages, of which this is the first.
    pub(crate) fn of(
        message: &MessageDescriptor,
        variables: &[&str],
        body: &str,
        needs_a_field: bool,
        is_upload: bool,
        shapes: &mut Shapes,
    ) -> Result<Self, Refusal> {
        let shape = shapes.of(message, Direction::Request)?;
        let name = message.full_name();
        for variable in variables {
            match shape.find(variable) {
                Some(Field { kind: Kind::Text | Kind::Enum(_), repeated: false, .. }) => {}
                _ => {
                    return Err(Refusal(format!(
                        "the path has `{{{variable}}}`, but {name} has no string or enum field of that name; add it"
                    )));
                }
            }
        }
        let target = match body {
            "" => Target::None,
            "*" => Target::Whole,
            field => match shape.index_of_name(field) {
                Some(index) if is_body(&shape.fields[index]) && !variables.contains(&field) => {
                    Target::Field(index)
                }
                Some(index) if matches!(shape.fields[index].kind, Kind::Signed) => Target::Signed(index),
                Some(index) if is_raw(&shape.fields[index]) && !variables.contains(&field) => {
                    Target::Raw(index)
                }
                _ => {
                    return Err(Refusal(format!(
                        "the body maps to `{field}`, but {name} has no single message, text or bytes field of that name; add it"
                    )));
                }
            },
        };
        let source = |(index, field): (usize, &Field)| match target {
            _ if variables.contains(&field.name.as_str()) => Ok(Source::Path),
            Target::None | Target::Signed(_) | Target::Raw(_) if matches!(field.kind, Kind::Mask) => {
                Err(Refusal(format!(
                    "{name}.{} lists the fields of a body, but the rule has no body with fields; add `body`",
                    field.name
                )))
            }
            _ if matches!(field.kind, Kind::Mask) => Ok(Source::Mask),
            Target::Field(body) | Target::Signed(body) | Target::Raw(body) if body == index => {
                Ok(Source::Body)
            }
            Target::Field(_) if is_upload && matches!(field.kind, Kind::Bytes) => Ok(Source::Stream),
            _ if matches!(field.kind, Kind::Bytes) => Err(Refusal(format!(
                "{name}.{} has bytes, which are the whole body of a request or nothing; map the body to it, or use a string",
                field.name
            ))),
            _ if matches!(field.kind, Kind::Signed) => Err(Refusal(format!(
                "{name}.{} is the whole body of a request or nothing; map the body to it",
                field.name
            ))),
            Target::Whole => Ok(Source::Body),
            _ if matches!(field.kind, Kind::Message(_) | Kind::Json) => Err(Refusal(format!(
                "{name}.{} can come neither from the path nor from the query; map the body to it",
                field.name
            ))),
            _ => Ok(Source::Query),
        };
        let sources = shape.fields.iter().enumerate().map(source).collect::<Result<Vec<_>, _>>()?;
        let has_mask = sources.contains(&Source::Mask);
        if is_upload && sources.iter().filter(|source| **source == Source::Stream).count() != 1 {
            return Err(Refusal(format!(
                "{name} is uploaded in parts; map the body to the field that describes the upload, and add one bytes field"
            )));
        }
        if needs_a_field && matches!(target, Target::None | Target::Signed(_) | Target::Raw(_)) {
            let refusal = "needs_a_field is set, but the rule has no body with fields; add `body`";
            return Err(Refusal(refusal.to_owned()));
        }
        Ok(Self {
            shape,
            sources,
            body: target,
            has_mask,
            masked: None,
            needs_a_field,
            shown: None,
            has_expansions: false,
        })
    }

    /// For programs: the JSON is the whole request message, whether or not the rpc has a route. A mask lists the fields
    /// that are set in the only message field, just as the mask of a PATCH lists those of the body.
    pub fn of_message(message: &MessageDescriptor) -> Result<Self, Refusal> {
        let mut plan = Self::of(message, &[], "*", false, false, &mut Shapes::default())?;
        let mut bodies = (0..plan.shape.fields.len()).filter(|index| is_body(&plan.shape.fields[*index]));
        plan.masked = bodies.next().filter(|_| plan.has_mask && bodies.next().is_none());
        Ok(plan)
    }

    /// The same for the whole of a list: there is no page to ask for.
    pub(crate) fn without_page(mut self) -> Self {
        for (field, source) in self.shape.fields.iter().zip(&mut self.sources) {
            if PAGE.contains(&field.name.as_str()) {
                *source = Source::Nothing;
            }
        }
        self
    }

    /// Whether a page of a list is asked for.
    pub(crate) fn has_page(&self) -> bool {
        PAGE.iter().all(|name| self.shape.find(name).is_some())
    }

    /// The same for an operation with this answer.
    pub(crate) fn answered_by(self, answer: &ResponsePlan) -> Self {
        Self { shown: answer.shape_of_data(), ..self }
    }

    /// Whether the operation reads a body.
    pub fn takes_body(&self) -> bool {
        self.body != Target::None
    }

    /// Whether the body is passed on unchanged, with its signature.
    pub fn takes_signed_body(&self) -> bool {
        matches!(self.body, Target::Signed(_))
    }

    /// The field of the message that the content of an upload fills, by its number.
    pub fn upload(&self) -> Option<u32> {
        let index = self.sources.iter().position(|source| *source == Source::Stream)?;
        Some(self.shape.fields[index].number)
    }

    /// Whether the body is a text or bytes, which are passed on unchanged.
    pub fn takes_raw_body(&self) -> bool {
        matches!(self.body, Target::Raw(_))
    }

    /// Builds the request message. Path values and query are raw, with their percent escapes; `None` means no body.
    /// The body is JSON, or the wire bytes of `SignedBody` for an operation with a signed body, or what a text or bytes field
    /// gets.
    pub fn bind(
        &self,
        path: &[(&str, &str)],
        query: Option<&str>,
        body: Option<&[u8]>,
    ) -> Result<Bound, Malformed> {
        self.bind_with(path, query, body, Handling::Unchecked)
    }

    /// The same, with a look at the names that nobody knows. `body` may be there for an operation without one: it has no
    /// effect, and all its names are unknown.
    pub fn bind_with(
        &self,
        path: &[(&str, &str)],
        query: Option<&str>,
        body: Option<&[u8]>,
        handling: Handling,
    ) -> Result<Bound, Malformed> {
        let mut faults = Collector::default();
        let segments = path
            .iter()
            .map(|(name, raw)| Ok((*name, query::path_segment(raw)?)))
            .collect::<Result<Vec<_>, Malformed>>()?;
        let parameters = self.parameters(query.unwrap_or_default(), &mut faults)?;
        let root = At::ROOT;
        let at = match self.body {
            Target::Field(index) => root.name(&self.shape.fields[index].name),
            Target::None | Target::Whole | Target::Signed(_) | Target::Raw(_) => root,
        };
        let is_unchanged = self.takes_signed_body() || self.takes_raw_body();
        let unchanged = body.filter(|_| is_unchanged);
        if let Target::Raw(index) = self.body
            && matches!(self.shape.fields[index].kind, Kind::Text)
            && unchanged.is_some_and(|body| std::str::from_utf8(body).is_err())
        {
            return Err(Malformed::new("The body must be UTF-8."));
        }
        let read = body.filter(|_| self.takes_body() && !is_unchanged);
        let tree = match read.map(|body| json::parse(body, MAX_DEPTH)) {
            None => None,
            Some(Ok(tree)) => Some(tree),
            Some(Err(Failure::Malformed(malformed))) => return Err(malformed),
            Some(Err(Failure::TooDeep)) => {
                faults.add_root(
                    &at,
                    Fault::TooDeep,
                    &format!("The body must have at most {MAX_DEPTH} levels."),
                );
                None
            }
        };
        let content = match &tree {
            Some(Json::Object(entries)) => {
                Some(Content::of(self.body_shape(), entries, |index| self.in_body(index), &at, &mut faults))
            }
            Some(_) => {
                faults.add_root(&at, Fault::NotAnObject, "The body must be an object.");
                None
            }
            None => None,
        };
        let empty = content.as_ref().is_none_or(|content| content.values.iter().all(Option::is_none));
        if self.needs_a_field && empty && faults.faults.is_empty() {
            faults.add_root(&at, Fault::NoField, "Send at least one of the fields that can be changed.");
        }
        let message = self.encode(&segments, &parameters, content.as_ref(), unchanged, &at, &mut faults);
        let wrapped = content.map(|content| content.wrapped).unwrap_or_default();
        let mut bound = Bound { message, faults: faults.faults, ignored: Ignored::default(), wrapped };
        let unexpected = body.filter(|_| self.body == Target::None);
        if handling != Handling::Unchecked && (faults.has_unknown || unexpected.is_some()) {
            let tree = tree.or_else(|| json::parse(unexpected?, MAX_DEPTH).ok());
            bound.ignored =
                self.unknown(query.unwrap_or_default(), tree.as_ref(), handling, &mut bound.faults);
        }
        Ok(bound)
    }

    /// The names that neither the request nor its answer knows. If those are faults, they are added.
    fn unknown(
        &self,
        query: &str,
        body: Option<&Json<'_>>,
        handling: Handling,
        faults: &mut Faults,
    ) -> Ignored {
        let mut unknown = Unknown { handling, ignored: Ignored::default(), faults };
        if let Some(Json::Object(entries)) = body {
            let taken = Some(self.body_shape()).filter(|_| self.takes_body());
            // What the path says may be said again.
            let is_taken = |name: &str| {
                let index = self.body_shape().index_of_name(name);
                index.is_some_and(|index| {
                    self.in_body(index) || self.sources.get(index) == Some(&Source::Path)
                })
            };
            unknown.body(entries, Known { taken, shown: self.shown.as_deref() }, is_taken);
        }
        let is_parameter = |index: &usize| self.sources[*index] == Source::Query;
        // Those that cannot be read were malformed before. Those of an upload are part of its description, the body.
        let parameters = Some(query).filter(|_| self.upload().is_none()).unwrap_or_default();
        for (name, _) in query::pairs(parameters).flatten() {
            let is_known = self.shape.index_of_name(&name).as_ref().is_some_and(is_parameter)
                || self.has_expansions && name == EXPAND;
            if !is_known && !name.is_empty() {
                let names = (0..self.sources.len()).filter(is_parameter);
                let names = names.map(|index| self.shape.fields[index].name.as_str());
                unknown.parameter(&name, names.chain(self.has_expansions.then_some(EXPAND)));
            }
        }
        unknown.ignored
    }

    /// The values of each query field, by its index.
    fn parameters<'q>(
        &self,
        query: &'q str,
        faults: &mut Collector,
    ) -> Result<Vec<Vec<Cow<'q, str>>>, Malformed> {
        let mut values = vec![Vec::new(); self.shape.fields.len()];
        for pair in query::pairs(query) {
            let (name, value) = pair?;
            if let Some(index) = self.shape.index_of_name(&name)
                && self.sources[index] == Source::Query
            {
                values[index].push(value);
            } else {
                faults.has_unknown = true;
            }
        }
        Ok(values)
    }

    fn body_shape(&self) -> &Shape {
        match self.body {
            Target::Field(index) => match &self.shape.fields[index].kind {
                Kind::Message(shape) => shape,
                _ => &self.shape,
            },
            Target::None | Target::Whole | Target::Signed(_) | Target::Raw(_) => &self.shape,
        }
    }

    /// Whether the body may set this field of the body's message.
    fn in_body(&self, index: usize) -> bool {
        self.body != Target::Whole || self.sources[index] == Source::Body
    }

    fn encode(
        &self,
        segments: &[(&str, Cow<'_, str>)],
        parameters: &[Vec<Cow<'_, str>>],
        content: Option<&Content<'_>>,
        unchanged: Option<&[u8]>,
        at: &At<'_>,
        faults: &mut Collector,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        let mut encoder = Encoder { faults, update: self.has_mask };
        for &index in &self.shape.by_number {
            let field = &self.shape.fields[index];
            match (self.sources[index], content) {
                (Source::Path, _) => {
                    let value = segments.iter().find(|(name, _)| *name == field.name);
                    if let Some((_, text)) = value.filter(|(_, text)| !text.is_empty()) {
                        put_parameter(field, std::slice::from_ref(text), encoder.faults, &mut out);
                    }
                }
                (Source::Query, _) => put_parameter(field, &parameters[index], encoder.faults, &mut out),
                // An empty mask is written too: without a mask a service would change every field.
                (Source::Mask, _) => put_nested(field.number, &mut out, |out| {
                    for name in content.map(|content| self.mask(content)).unwrap_or_default() {
                        put_bytes(1, name.as_bytes(), out);
                    }
                }),
                (Source::Body, _) if self.takes_signed_body() || self.takes_raw_body() => {
                    if let Some(body) = unchanged.filter(|body| self.takes_signed_body() || !body.is_empty())
                    {
                        put_bytes(field.number, body, &mut out);
                    }
                }
                (Source::Body, Some(content)) if self.body == Target::Whole => {
                    if let Some(json) = content.values[index] {
                        encoder.field(field, json, at, &mut out);
                    }
                }
                (Source::Body, Some(content)) => {
                    put_nested(field.number, &mut out, |out| {
                        encoder.content(self.body_shape(), content, at, out);
                    });
                }
                (Source::Body, None) | (Source::Stream | Source::Nothing, _) => {}
            }
        }
        out
    }

    /// The names of the fields that the request contains, in the order of their numbers.
    fn mask(&self, content: &Content<'_>) -> Vec<&str> {
        let Some((index, Kind::Message(shape))) =
            self.masked.map(|index| (index, &self.shape.fields[index].kind))
        else {
            return content.names(self.body_shape()).collect();
        };
        let Some(Json::Object(entries)) = content.values[index] else { return Vec::new() };
        let fields = shape.by_number.iter().map(|index| shape.fields[*index].name.as_str());
        fields.filter(|name| entries.iter().any(|(key, _)| key == name)).collect()
    }

    /// Translates a pointer into the request message, from `bind` or from a service, to its location in the request.
    pub fn locate(&self, bound: &Bound, pointer: &str) -> Location {
        if let Some(pointer) = pointer.strip_prefix(unknown::BODY) {
            return Location::Pointer(pointer.to_owned());
        }
        if let Some(name) = pointer.strip_prefix(unknown::PARAMETER) {
            return Location::Parameter(name.to_owned());
        }
        let (first, rest) = split(pointer);
        let source = self.shape.index_of_name(first).map(|index| self.sources[index]);
        match (source, self.body) {
            (Some(Source::Path | Source::Query), _) => Location::Parameter(first.to_owned()),
            (Some(Source::Mask), _) => Location::Pointer(String::new()),
            (Some(Source::Body), Target::Field(_) | Target::Signed(_) | Target::Raw(_)) => {
                Location::Pointer(self.with_wrapper(bound, rest))
            }
            _ => Location::Pointer(self.with_wrapper(bound, pointer)),
        }
    }

    fn with_wrapper(&self, bound: &Bound, pointer: &str) -> String {
        let shape = self.body_shape();
        let wrapped = shape
            .index_of_name(split(pointer).0)
            .is_some_and(|index| bound.wrapped.get(index).copied().unwrap_or(false));
        if wrapped { format!("/{}{pointer}", shape.wrapper) } else { pointer.to_owned() }
    }
}

fn is_body(field: &Field) -> bool {
    matches!(field.kind, Kind::Message(_)) && !field.repeated
}

fn is_raw(field: &Field) -> bool {
    matches!(field.kind, Kind::Text | Kind::Bytes) && !field.repeated
}

/// The first name of a pointer, and the rest of the pointer. Names of fields need no unescaping.
fn split(pointer: &str) -> (&str, &str) {
    let inner = pointer.strip_prefix('/').unwrap_or(pointer);
    inner.split_at(inner.find('/').unwrap_or(inner.len()))
}

/// An empty value is the same as an absent one. For a single value the last occurrence counts; a list may repeat the
/// parameter or separate values by commas.
fn put_parameter(field: &Field, values: &[Cow<'_, str>], faults: &mut Collector, out: &mut Vec<u8>) {
    let root = At::ROOT;
    let at = root.name(&field.name);
    if field.repeated {
        let parts = values.iter().flat_map(|value| value.split(',')).filter(|part| !part.is_empty());
        let read = |part| faults.keep(&at, Scalar::from_parameter(&field.kind, part));
        let scalars: Vec<Scalar<'_>> = parts.filter_map(read).collect();
        put_list(field, &scalars, out);
    } else if let Some(value) = values.last().filter(|value| !value.is_empty())
        && let Some(scalar) = faults.keep(&at, Scalar::from_parameter(&field.kind, value))
    {
        scalar.put(field, field.optional, out);
    }
}
