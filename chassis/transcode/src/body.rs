//! Request bodies: from a JSON tree to wire bytes. Every fault is collected with a pointer to its field.

use std::borrow::Cow;

use proto::api::Fault;
use proto::{At, Faults};

use super::json::Json;
use super::plan::{Field, Kind, Shape};
use super::scalar::{Scalar, Wrong, put_list};
use super::wire::put_nested;

/// More faults than anyone reads, and few enough to be sent in the headers of a call.
pub(crate) const MAX_FAULTS: usize = 100;

/// Collects faults up to a limit, so that a body full of faults costs no more than a body with a few.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    pub faults: Faults,
    /// Whether there was a name that the request does not know; the answer may.
    pub has_unknown: bool,
}

impl Collector {
    pub(crate) fn add(&mut self, at: &At<'_>, fault: Fault, detail: &str) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.add(at, fault, format!("{} {detail}", at.label()));
        }
    }

    /// A fault of the body as a whole; `detail` is a complete sentence.
    pub(crate) fn add_root(&mut self, at: &At<'_>, fault: Fault, detail: &str) {
        self.faults.add(at, fault, detail);
    }

    pub(crate) fn keep<T>(&mut self, at: &At<'_>, value: Result<T, Wrong>) -> Option<T> {
        value.map_err(|wrong| self.add(at, wrong.fault, &wrong.detail)).ok()
    }
}

/// The values of a body for the fields of its message, by the index of the field.
#[derive(Debug)]
pub(crate) struct Content<'t> {
    pub values: Vec<Option<&'t Json<'t>>>,
    /// Which values came from the wrapper object.
    pub wrapped: Vec<bool>,
}

type Entries<'t> = [(Cow<'t, str>, Json<'t>)];

impl<'t> Content<'t> {
    /// Matches keys to fields. `settable` says which fields a body may set. The last of a repeated key counts, unknown
    /// keys are ignored, and a key at the top level takes precedence over the wrapper's.
    pub(crate) fn of(
        shape: &Shape,
        entries: &'t Entries<'t>,
        settable: impl Fn(usize) -> bool,
        at: &At<'_>,
        faults: &mut Collector,
    ) -> Self {
        let mut values = vec![None; shape.fields.len()];
        let mut wrapping = None;
        let index_of = |key: &str| shape.index_of_name(key).filter(|index| settable(*index));
        for (key, value) in entries {
            if let Some(index) = index_of(key) {
                values[index] = Some(value);
            } else if !shape.wrapper.is_empty() && *key == shape.wrapper {
                wrapping = Some(value);
            } else {
                faults.has_unknown = true;
            }
        }
        let mut from_wrapper = vec![false; shape.fields.len()];
        match wrapping {
            None | Some(Json::Null) => {}
            Some(Json::Object(entries)) => {
                for (key, value) in entries {
                    let index = index_of(key);
                    faults.has_unknown |= index.is_none();
                    if let Some(index) = index.filter(|i| from_wrapper[*i] || values[*i].is_none()) {
                        values[index] = Some(value);
                        from_wrapper[index] = true;
                    }
                }
            }
            Some(_) => faults.add(&at.name(&shape.wrapper), Fault::NotAnObject, "must be an object"),
        }
        for (value, field) in values.iter_mut().zip(&shape.fields) {
            *value = value.filter(|json| !is_unspecified(field, json));
        }
        Self { values, wrapped: from_wrapper }
    }

    /// The names of the fields that the body contains, in the order of their numbers.
    pub(crate) fn names<'s>(&self, shape: &'s Shape) -> impl Iterator<Item = &'s str> {
        shape
            .by_number
            .iter()
            .filter(|index| self.values[**index].is_some())
            .map(|index| shape.fields[*index].name.as_str())
    }
}

/// Enum value 0 is rendered as `""`, so a client that sends it back must not change the field.
fn is_unspecified(field: &Field, json: &Json<'_>) -> bool {
    !field.repeated && matches!((&field.kind, json), (Kind::Enum(_), Json::String(text)) if text.is_empty())
}

/// Writes values as fields. `update` is set for the top level of a PATCH, where `null` clears a field; elsewhere `null`
/// is the same as absent.
pub(crate) struct Encoder<'f> {
    pub faults: &'f mut Collector,
    pub update: bool,
}

impl Encoder<'_> {
    pub(crate) fn content(&mut self, shape: &Shape, content: &Content<'_>, at: &At<'_>, out: &mut Vec<u8>) {
        for &index in &shape.by_number {
            if let Some(json) = content.values[index] {
                self.field(&shape.fields[index], json, at, out);
            }
        }
    }

    pub(crate) fn field(&mut self, field: &Field, json: &Json<'_>, parent: &At<'_>, out: &mut Vec<u8>) {
        let at = parent.name(&field.name);
        if matches!(json, Json::Null) {
            if self.update && !field.can_be_emptied() {
                self.faults.add(&at, Fault::NotNullable, "cannot be emptied");
            }
        } else if field.repeated {
            self.list(field, json, &at, out);
        } else if let Kind::Message(shape) = &field.kind {
            if let Json::Object(entries) = json {
                put_nested(field.number, out, |out| self.inner(shape, entries, &at, out));
            } else {
                self.not_an_object(&at);
            }
        } else if !is_unspecified(field, json)
            && let Some(value) = self.faults.keep(&at, Scalar::from_json(&field.kind, json))
        {
            value.put(field, field.optional, out);
        }
    }

    fn inner(&mut self, shape: &Shape, entries: &Entries<'_>, at: &At<'_>, out: &mut Vec<u8>) {
        let mut values = vec![None; shape.fields.len()];
        for (key, value) in entries {
            match shape.index_of_name(key) {
                Some(index) => values[index] = Some(value),
                None => self.faults.has_unknown = true,
            }
        }
        let mut encoder = Encoder { faults: self.faults, update: false };
        for &index in &shape.by_number {
            if let Some(json) = values[index] {
                encoder.field(&shape.fields[index], json, at, out);
            }
        }
    }

    fn list(&mut self, field: &Field, json: &Json<'_>, at: &At<'_>, out: &mut Vec<u8>) {
        let Json::Array(items) = json else {
            self.faults.add(at, Fault::NotAnArray, "must be an array");
            return;
        };
        if let Kind::Message(shape) = &field.kind {
            for (index, item) in items.iter().enumerate() {
                // An entry that is not an object is written as an empty one, so that later entries keep their index.
                put_nested(field.number, out, |out| match item {
                    Json::Object(entries) => self.inner(shape, entries, &at.index(index), out),
                    _ => self.not_an_object(&at.index(index)),
                });
            }
            return;
        }
        let scalars: Vec<Scalar<'_>> = items
            .iter()
            .enumerate()
            .map(|(index, item)| {
                let read = self.faults.keep(&at.index(index), Scalar::from_json(&field.kind, item));
                read.unwrap_or_else(|| Scalar::placeholder(&field.kind))
            })
            .collect();
        put_list(field, &scalars, out);
    }

    fn not_an_object(&mut self, at: &At<'_>) {
        self.faults.add(at, Fault::NotAnObject, "must be an object");
    }
}
