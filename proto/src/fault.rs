//! The faults of a request, each with its place. Collected, so that a caller learns of all of them at once.

use crate::api::carried_faults::Entry;
use crate::api::{CarriedFaults, Fault};

/// A place in a request message, written as a JSON Pointer only when there is a fault to report.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    parent: Option<&'a At<'a>>,
    segment: Segment<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Segment<'a> {
    Root,
    Name(&'a str),
    Index(usize),
}

impl<'a> At<'a> {
    pub const ROOT: At<'static> = At { parent: None, segment: Segment::Root };

    #[must_use]
    pub fn name(&'a self, name: &'a str) -> At<'a> {
        At { parent: Some(self), segment: Segment::Name(name) }
    }

    #[must_use]
    pub fn index(&'a self, index: usize) -> At<'a> {
        At { parent: Some(self), segment: Segment::Index(index) }
    }

    /// RFC 6901.
    pub fn pointer(&self) -> String {
        let mut pointer = self.parent.map(At::pointer).unwrap_or_default();
        match self.segment {
            Segment::Root => {}
            Segment::Name(name) => {
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
            }
            Segment::Index(index) => {
                pointer.push('/');
                pointer.push_str(&index.to_string());
            }
        }
        pointer
    }

    /// What a message calls the place: its last name.
    pub fn label(&self) -> &'a str {
        match self.segment {
            Segment::Name(name) => name,
            Segment::Index(_) => self.parent.map_or("the entry", At::label),
            Segment::Root => "the body",
        }
    }
}

/// Faults in the order in which they were found, at most one for each place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    entries: Vec<Entry>,
}

impl Faults {
    /// Adds a fault unless its place, or something inside it, already has one: a value that could not be read is not
    /// also reported as missing. Inside of something that is not even of the right type nothing is looked for.
    pub fn add(&mut self, at: &At<'_>, code: Fault, detail: impl Into<String>) {
        self.add_at(at.pointer(), code, detail);
    }

    pub fn add_at(&mut self, pointer: String, code: Fault, detail: impl Into<String>) {
        let hides = |entry: &Entry| {
            is_inside(&entry.pointer, &pointer)
                || (is_inside(&pointer, &entry.pointer)
                    && matches!(entry.code(), Fault::NotAnObject | Fault::NotAnArray | Fault::TooDeep))
        };
        if !self.entries.iter().any(hides) {
            self.entries.push(Entry { pointer, code: code.into(), detail: detail.into() });
        }
    }

    /// Adds faults that were found elsewhere.
    pub fn extend(&mut self, others: Faults) {
        for Entry { pointer, code, detail } in others.entries {
            self.add_at(pointer, Fault::try_from(code).unwrap_or_default(), detail);
        }
    }

    /// Whether there is a fault at this place or around it: then nothing more can be said about what is there.
    pub fn cover(&self, at: &At<'_>) -> bool {
        let pointer = at.pointer();
        self.entries.iter().any(|entry| is_inside(&pointer, &entry.pointer))
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub fn into_entries(self) -> Vec<Entry> {
        self.entries
    }
}

/// Whether a place is another one or lies inside it.
fn is_inside(place: &str, other: &str) -> bool {
    place.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl From<CarriedFaults> for Faults {
    fn from(carried: CarriedFaults) -> Self {
        Self { entries: carried.faults }
    }
}

impl From<Faults> for CarriedFaults {
    fn from(faults: Faults) -> Self {
        Self { faults: faults.entries }
    }
}

impl Fault {
    /// The stable code, for example `not_a_number`.
    pub fn code(self) -> String {
        self.as_str_name().trim_start_matches("FAULT_").to_ascii_lowercase()
    }

    pub fn from_code(code: &str) -> Option<Self> {
        Self::from_str_name(&format!("FAULT_{}", code.to_ascii_uppercase()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_escapes_and_counts() {
        let rows = At::ROOT.name("a/b");
        let row = rows.index(3);
        assert_eq!(row.name("c~d").pointer(), "/a~1b/3/c~0d");
        assert_eq!(At::ROOT.pointer(), "");
    }

    #[test]
    fn a_place_is_reported_once() {
        let mut faults = Faults::default();
        let list = At::ROOT.name("list");
        faults.add(&list.index(0), Fault::NotAString, "first");
        faults.add(&list, Fault::Required, "hidden by the fault inside");
        faults.add(&At::ROOT.name("listed"), Fault::Required, "another place");
        assert_eq!(faults.len(), 2);
    }

    #[test]
    fn nothing_is_reported_inside_of_what_is_no_object() {
        let mut faults = Faults::default();
        let client = At::ROOT.name("client");
        faults.add(&client, Fault::NotAnObject, "no object");
        faults.add(&client.name("email"), Fault::Required, "hidden by the fault around it");
        faults.add(&At::ROOT.name("rows"), Fault::TooMany, "too many");
        faults.add(&At::ROOT.name("rows").index(0), Fault::Required, "still worth knowing");
        assert_eq!(faults.len(), 3);
    }

    #[test]
    fn a_fault_covers_its_place_and_what_is_inside() {
        let mut faults = Faults::default();
        let client = At::ROOT.name("client");
        faults.add(&client.name("email"), Fault::NotAString, "text");
        let other = At::ROOT.name("other");
        faults.add(&other, Fault::NotAnObject, "no object");
        assert!(faults.cover(&client.name("email")));
        assert!(faults.cover(&other.name("email")));
        assert!(!faults.cover(&client) && !faults.cover(&client.name("email_invoices")));
    }

    #[test]
    fn codes_round_trip() {
        assert_eq!(Fault::NotANumber.code(), "not_a_number");
        assert_eq!(Fault::from_code("not_a_number"), Some(Fault::NotANumber));
        assert_eq!(Fault::from_code("no_such_code"), None);
    }
}
