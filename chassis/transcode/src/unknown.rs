//! Names of a request that neither the request nor the answer of its operation knows: a misspelled field, a filter that
//! does not exist. They have no effect, so the caller is told of them. What an answer shows is known, so that it can be
//! sent back.
//!
//! Reading a request only notices that there may be such names. They are looked for afterwards, in the order in which they
//! were sent.

use std::borrow::Cow;

use proto::api::Fault;
use proto::{At, Faults, did_you_mean};

use super::json::Json;
use super::plan::{Field, Kind, Shape};
use super::text::put_string;

/// Names that are told. Of more, their number is.
const MAX_NAMES: usize = 20;
/// The longest name that is told whole, in characters.
const MAX_LENGTH: usize = 100;

/// What becomes of a name that nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    /// It is not looked for.
    Unchecked,
    /// It is ignored, and told.
    Lenient,
    /// It is a fault.
    Strict,
}

/// The names of a request that were ignored: pointers into the body, and parameters as `?name`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ignored {
    names: Vec<String>,
    more: usize,
}

impl Ignored {
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// What is told: the first names, and how many more there are.
    pub fn to_list(&self) -> Vec<Cow<'_, str>> {
        let mut list: Vec<Cow<'_, str>> =
            self.names.iter().map(|name| Cow::Borrowed(name.as_str())).collect();
        if self.more > 0 {
            list.push(Cow::Owned(format!("and {} more", self.more)));
        }
        list
    }

    /// Appends the list as JSON.
    pub fn write(&self, out: &mut Vec<u8>) {
        for (index, name) in self.to_list().iter().enumerate() {
            out.push(if index == 0 { b'[' } else { b',' });
            put_string(name, out);
        }
        out.push(b']');
    }
}

/// Collects the names that nobody knows.
pub(crate) struct Unknown<'f> {
    pub handling: Handling,
    pub ignored: Ignored,
    pub faults: &'f mut Faults,
}

/// What is known at one place of a body.
#[derive(Clone, Copy)]
pub(crate) struct Known<'p> {
    /// The fields that the request takes there.
    pub taken: Option<&'p Shape>,
    /// The fields that the answer shows there.
    pub shown: Option<&'p Shape>,
}

type Entries<'t> = [(Cow<'t, str>, Json<'t>)];

impl Unknown<'_> {
    /// The entries of the whole body. `is_taken` says which of the fields that are known a body may name; those of a wrapper
    /// object are the same.
    pub(crate) fn body(
        &mut self,
        entries: &Entries<'_>,
        known: Known<'_>,
        is_taken: impl Fn(&str) -> bool + Copy,
    ) {
        let wrapper = known.taken.map(|shape| shape.wrapper.as_str()).filter(|wrapper| !wrapper.is_empty());
        for (key, value) in entries {
            let at = At::ROOT;
            match value {
                Json::Object(inner) if wrapper == Some(key.as_ref()) => {
                    let at = at.name(key);
                    for (key, value) in inner {
                        self.entry(key, value, known, is_taken, &at);
                    }
                }
                _ if wrapper == Some(key.as_ref()) => {}
                _ => self.entry(key, value, known, is_taken, &at),
            }
        }
    }

    fn entry(
        &mut self,
        key: &str,
        value: &Json<'_>,
        known: Known<'_>,
        is_taken: impl Fn(&str) -> bool,
        at: &At<'_>,
    ) {
        let taken = known.taken.and_then(|shape| shape.find(key)).filter(|_| is_taken(key));
        let shown = known.shown.and_then(|shape| shape.find(key));
        if taken.is_some() || shown.is_some() {
            self.inside(value, taken, shown, &at.name(key));
            return;
        }
        let names = known.taken.map(|shape| shape.fields.iter()).unwrap_or_default();
        let names = names.map(|field| field.name.as_str()).filter(|name| is_taken(name));
        self.add(Place::Body(at), key, names);
    }

    /// The value of a field that is known. What is free, or should not be an object, has no names that could be unknown.
    fn inside(&mut self, value: &Json<'_>, taken: Option<&Field>, shown: Option<&Field>, at: &At<'_>) {
        let known = Known { taken: taken.and_then(shape_of), shown: shown.and_then(shape_of) };
        let is_value = taken.is_some() && known.taken.is_none();
        let is_free = is_value || shown.is_some_and(|field| matches!(field.kind, Kind::Json));
        if is_free || (known.taken.is_none() && known.shown.is_none()) {
            return;
        }
        let mut object = |value: &Json<'_>, at: &At<'_>| {
            if let Json::Object(entries) = value {
                for (key, value) in entries {
                    self.entry(key, value, known, |_| true, at);
                }
            }
        };
        match value {
            Json::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    object(item, &at.index(index));
                }
            }
            value => object(value, at),
        }
    }

    /// A parameter of the query. `names` are those that there are.
    pub(crate) fn parameter<'k>(&mut self, name: &str, names: impl Iterator<Item = &'k str>) {
        self.add(Place::Query, name, names);
    }

    fn add<'k>(&mut self, place: Place<'_>, name: &str, names: impl Iterator<Item = &'k str>) {
        if self.ignored.names.len() == MAX_NAMES {
            self.ignored.more += 1;
            return;
        }
        let told = place.told(name);
        if self.ignored.names.contains(&told) {
            return;
        }
        if self.handling == Handling::Strict {
            let (what, meant) = (place.what(), did_you_mean(name, names));
            let detail = format!("{} is not a {what} of this operation{meant}", shortened(name));
            self.faults.add_at(place.fault(&told), Fault::UnknownField, detail);
        }
        self.ignored.names.push(told);
    }
}

fn shape_of(field: &Field) -> Option<&Shape> {
    match &field.kind {
        Kind::Message(shape) => Some(shape),
        _ => None,
    }
}

/// Where a name was sent.
#[derive(Clone, Copy)]
enum Place<'a> {
    /// Beside others at this place of the body.
    Body(&'a At<'a>),
    Query,
}

impl Place<'_> {
    fn told(self, name: &str) -> String {
        shortened(&match self {
            Self::Body(at) => at.name(name).pointer(),
            Self::Query => format!("?{name}"),
        })
    }

    fn what(self) -> &'static str {
        match self {
            Self::Body(_) => "field",
            Self::Query => "parameter",
        }
    }

    /// The pointer of a fault there, which says by its first character that it is not one into the message.
    fn fault(self, told: &str) -> String {
        match self {
            Self::Body(_) => format!("{BODY}{told}"),
            Self::Query => told.to_owned(),
        }
    }
}

/// Come before what is not a pointer into the message, but one into the body, or the name of a parameter.
pub(crate) const BODY: char = '#';
pub(crate) const PARAMETER: char = '?';

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_LENGTH - 1) {
        Some((end, last)) if end + last.len_utf8() < text.len() => format!("{}…", &text[..end]),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_shortened_to_a_hundred_characters() {
        let long = |count| "é".repeat(count);
        assert_eq!(shortened(&long(100)), long(100));
        assert_eq!(shortened(&long(101)), long(99) + "…");
        assert_eq!(shortened(""), "");
    }
}
