//! Reads a definition from YAML or JSON, with every fault pointed at: a step that cannot be read does not hide what is
//! wrong with the others. Pure.

use proto::Faults;
use proto::api::Fault;
use serde::Deserialize;
use serde_json::{Map, Value};
use serde_path_to_error::Segment;

use super::definition::{Definition, Step};

/// Branches inside each other.
const MAX_DEPTH: usize = 8;

/// The definition as far as it can be read. `at` is where the document is, for the places of faults.
pub(crate) fn read(text: &str, at: &str, faults: &mut Faults) -> Option<Definition> {
    let document = match parse(text) {
        Ok(document) => document,
        Err(error) => {
            faults.add_at(at.to_owned(), Fault::BadFormat, format!("the definition cannot be read: {error}"));
            return None;
        }
    };
    let Value::Object(mut fields) = document else {
        faults.add_at(at.to_owned(), Fault::NotAnObject, "the definition must be an object");
        return None;
    };
    let steps = fields.insert("steps".to_owned(), Value::Array(Vec::new()));
    let place = format!("{at}/steps");
    let steps = match steps {
        Some(Value::Array(steps)) => Some(read_steps(steps, &place, 1, faults)),
        Some(_) => {
            faults.add_at(place, Fault::NotAnArray, "steps must be a list");
            None
        }
        None => {
            faults.add_at(place, Fault::Required, "steps is required");
            None
        }
    };
    let mut definition: Definition = typed(Value::Object(fields), at, faults)?;
    definition.steps = steps?;
    Some(definition)
}

/// JSON is looked for first: it is the stricter of the two. YAML may begin like it: `{name: …}`.
fn parse(text: &str) -> Result<Value, String> {
    if !text.trim_start().starts_with('{') {
        return serde_norway::from_str(text).map_err(|error| error.to_string());
    }
    let error = match serde_json::from_str(text) {
        Ok(document) => return Ok(document),
        Err(error) => error.to_string(),
    };
    serde_norway::from_str(text).map_err(|_| error)
}

/// Steps that cannot be read are left out; then there are faults.
fn read_steps(values: Vec<Value>, at: &str, depth: usize, faults: &mut Faults) -> Vec<Step> {
    if depth > MAX_DEPTH {
        let detail = format!("branches may be inside each other {MAX_DEPTH} levels deep");
        faults.add_at(at.to_owned(), Fault::TooDeep, detail);
        return Vec::new();
    }
    let values = values.into_iter().enumerate();
    values.filter_map(|(index, value)| read_step(value, &format!("{at}/{index}"), depth, faults)).collect()
}

fn read_step(value: Value, at: &str, depth: usize, faults: &mut Faults) -> Option<Step> {
    let Value::Object(mut fields) = value else {
        faults.add_at(at.to_owned(), Fault::NotAnObject, "a step must be an object");
        return None;
    };
    let then = inner(&mut fields, "then", at, depth, faults);
    let otherwise = inner(&mut fields, "else", at, depth, faults);
    let refused = match fields.get_mut("approve") {
        Some(Value::Object(approve)) => inner(approve, "otherwise", &format!("{at}/approve"), depth, faults),
        _ => Vec::new(),
    };
    let mut step: Step = typed(Value::Object(fields), at, faults)?;
    (step.then, step.otherwise) = (then, otherwise);
    if let Some(approve) = &mut step.approve {
        approve.otherwise = refused;
    }
    Some(step)
}

fn inner(
    fields: &mut Map<String, Value>,
    name: &str,
    at: &str,
    depth: usize,
    faults: &mut Faults,
) -> Vec<Step> {
    let place = format!("{at}/{name}");
    match fields.remove(name) {
        None => Vec::new(),
        Some(Value::Array(values)) => read_steps(values, &place, depth + 1, faults),
        Some(_) => {
            faults.add_at(place, Fault::NotAnArray, format!("{name} must be a list of steps"));
            Vec::new()
        }
    }
}

/// A value as its type, or the first reason why not.
fn typed<T: for<'de> Deserialize<'de>>(value: Value, at: &str, faults: &mut Faults) -> Option<T> {
    match serde_path_to_error::deserialize(value) {
        Ok(typed) => Some(typed),
        Err(error) => {
            let place = pointer(at, error.path());
            faults.add_at(place, Fault::BadFormat, error.inner().to_string());
            None
        }
    }
}

fn pointer(at: &str, path: &serde_path_to_error::Path) -> String {
    let mut pointer = at.to_owned();
    for segment in path {
        match segment {
            Segment::Seq { index } => {
                pointer.push('/');
                pointer.push_str(&index.to_string());
            }
            Segment::Map { key } | Segment::Enum { variant: key } => {
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
            }
            Segment::Unknown => {}
        }
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn faults_of(text: &str) -> Vec<(String, String)> {
        let mut faults = Faults::default();
        let read = read(text, "", &mut faults);
        assert!(read.is_some() || !faults.is_empty(), "{text}");
        faults.into_entries().into_iter().map(|entry| (entry.pointer, entry.detail)).collect()
    }

    const YAML: &str = "
name: A
trigger: {event: invoice.late}
steps:
  - id: ask
    when: data.total > 5
    then:
      - id: pause
        wait: {for: 3d}
    else:
      - id: boss
        approve:
          title: Really?
          otherwise:
            - id: tell
              mail: {to: a@example.com, subject: S, text: T}
";

    #[test]
    fn yaml_and_json_say_the_same() {
        let mut faults = Faults::default();
        let yaml = read(YAML, "", &mut faults).unwrap();
        assert!(faults.is_empty(), "{faults:?}");
        let json = serde_json::to_string(&yaml).unwrap();
        assert_eq!(read(&json, "", &mut faults), Some(yaml.clone()));
        let ids: Vec<&str> = yaml.all_steps().iter().map(|step| step.id.as_str()).collect();
        assert_eq!(ids, ["ask", "pause", "boss", "tell"]);
        let between = read("{name: A, trigger: manual, steps: [{id: a, wait: {for: 1d}}]}", "", &mut faults);
        assert_eq!(between.map(|flow| flow.steps.len()), Some(1), "{faults:?}");
    }

    #[test]
    fn every_step_that_cannot_be_read_is_told_with_its_place() {
        let text = "
name: A
trigger: {event: x}
steps:
  - {id: a, call: {method: 5}}
  - {id: b, when: 'x', then: [{id: c, wait: {fro: 3d}}, 7]}
  - {wait: {for: 3d}}
  - {id: d, when: 'x', else: 5}
";
        let places: Vec<String> = faults_of(text).into_iter().map(|(place, _)| place).collect();
        for place in ["/steps/0/call/method", "/steps/1/then/1", "/steps/2", "/steps/3/else"] {
            assert!(places.contains(&place.to_owned()), "{place}: {places:?}");
        }
        assert!(places.iter().any(|place| place.starts_with("/steps/1/then/0")), "{places:?}");
    }

    #[test]
    fn what_is_no_definition_is_refused() {
        for text in ["", "a", "- a", "{", "name: [", "{}", "{\"steps\": 5}", "a: &a [*a, *a]"] {
            assert!(!faults_of(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn branches_are_not_endlessly_deep() {
        let mut step = "{\"id\": \"x\"}".to_owned();
        for _ in 0..200 {
            step = format!("{{\"id\": \"x\", \"when\": \"a\", \"then\": [{step}]}}");
        }
        let text = format!("{{\"name\": \"A\", \"trigger\": \"manual\", \"steps\": [{step}]}}");
        assert!(!faults_of(&text).is_empty());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[ -~\n]{0,80}") {
            faults_of(&text);
        }
    }
}
