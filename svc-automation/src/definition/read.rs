//! Reads a definition from YAML or JSON. Every fault has the pointer of its position in the document, and a step that
//! cannot be read does not hide the faults of the others. Pure.

use proto::Faults;
use proto::api::Fault;
use serde::Deserialize;
use serde_json::{Map, Value};
use serde_path_to_error::Segment;

use super::model::{Definition, Step};

/// How deep branches may be nested.
const MAX_DEPTH: usize = 8;

/// Reads as much of the definition as possible. `at` is the pointer of the document, before the pointers of faults.
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
    // Steps are read one by one, so that each reports its own fault; serde would stop at the first.
    let steps = fields.insert("steps".to_owned(), Value::Array(Vec::new()));
    let pointer = format!("{at}/steps");
    let steps = match steps {
        Some(Value::Array(steps)) => Some(read_steps(steps, &pointer, 1, faults)),
        Some(_) => {
            faults.add_at(pointer, Fault::NotAnArray, "steps must be a list");
            None
        }
        None => {
            faults.add_at(pointer, Fault::Required, "steps is required");
            None
        }
    };
    let mut definition: Definition = typed(Value::Object(fields), at, faults)?;
    definition.steps = steps?;
    Some(definition)
}

/// A text that begins like JSON is tried as JSON first, whose errors are clearer; YAML may begin like it too: `{name: …}`.
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

/// Leaves out steps that cannot be read, with a fault for each.
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
    let then = read_branch(&mut fields, "then", at, depth, faults);
    let otherwise = read_branch(&mut fields, "else", at, depth, faults);
    let rejected = match fields.get_mut("approve") {
        Some(Value::Object(approve)) => {
            read_branch(approve, "otherwise", &format!("{at}/approve"), depth, faults)
        }
        _ => Vec::new(),
    };
    let mut step: Step = typed(Value::Object(fields), at, faults)?;
    step.then = then;
    step.otherwise = otherwise;
    if let Some(approve) = &mut step.approve {
        approve.otherwise = rejected;
    }
    Some(step)
}

/// Takes the steps of a branch out of its fields.
fn read_branch(
    fields: &mut Map<String, Value>,
    name: &str,
    at: &str,
    depth: usize,
    faults: &mut Faults,
) -> Vec<Step> {
    let pointer = format!("{at}/{name}");
    match fields.remove(name) {
        None => Vec::new(),
        Some(Value::Array(values)) => read_steps(values, &pointer, depth + 1, faults),
        Some(_) => {
            faults.add_at(pointer, Fault::NotAnArray, format!("{name} must be a list of steps"));
            Vec::new()
        }
    }
}

/// Deserialises a value, or adds the first reason why that fails.
fn typed<T: for<'de> Deserialize<'de>>(value: Value, at: &str, faults: &mut Faults) -> Option<T> {
    match serde_path_to_error::deserialize(value) {
        Ok(typed) => Some(typed),
        Err(error) => {
            faults.add_at(pointer(at, error.path()), Fault::BadFormat, error.inner().to_string());
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
    fn yaml_and_json_are_read_alike() {
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
    fn every_step_that_cannot_be_read_is_reported_with_its_pointer() {
        let text = "
name: A
trigger: {event: x}
steps:
  - {id: a, call: {method: 5}}
  - {id: b, when: 'x', then: [{id: c, wait: {fro: 3d}}, 7]}
  - {wait: {for: 3d}}
  - {id: d, when: 'x', else: 5}
";
        let pointers: Vec<String> = faults_of(text).into_iter().map(|(pointer, _)| pointer).collect();
        for pointer in ["/steps/0/call/method", "/steps/1/then/1", "/steps/2", "/steps/3/else"] {
            assert!(pointers.contains(&pointer.to_owned()), "{pointer}: {pointers:?}");
        }
        assert!(pointers.iter().any(|pointer| pointer.starts_with("/steps/1/then/0")), "{pointers:?}");
    }

    fn with_retry(retry: &str) -> Definition {
        let text = format!(
            "{{name: A, trigger: manual, steps: [{{id: a, call: {{method: x}}, retry: {{{retry}}}}}]}}"
        );
        read(&text, "", &mut Faults::default()).unwrap()
    }

    #[test]
    fn a_retry_is_stored_under_its_old_names_whichever_its_author_used() {
        let new = with_retry("initial_backoff: 1s, max_backoff: 5m");
        let old = with_retry("first_wait: 1s, most_wait: 5m");
        let stored = serde_json::to_string(&new).unwrap();
        assert_eq!(stored, serde_json::to_string(&old).unwrap(), "they are the same version");
        // Exactly what the release before wrote, field by field: it compares and reads this text.
        let retry = r#""retry":{"max_attempts":5,"first_wait":"1s","most_wait":"5m"}"#;
        assert!(stored.contains(retry), "{stored}");
        let read: Definition = serde_json::from_str(&stored).unwrap();
        for definition in [&new, &old, &read] {
            let retry = definition.steps[0].retry.as_ref().unwrap();
            assert_eq!((retry.initial_backoff(), retry.max_backoff()), (Some("1s"), Some("5m")));
        }
        let bare = serde_json::to_string(&with_retry("max_attempts: 2")).unwrap();
        assert!(bare.contains(r#""retry":{"max_attempts":2}"#), "{bare}");
    }

    #[test]
    fn a_text_that_is_not_a_definition_is_refused() {
        for text in ["", "a", "- a", "{", "name: [", "{}", "{\"steps\": 5}", "a: &a [*a, *a]"] {
            assert!(!faults_of(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn the_nesting_of_branches_is_bounded() {
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
