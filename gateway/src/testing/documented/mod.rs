//! Holds every answer that a test gets against the reference: integrators program against the statuses, codes and schemas
//! that it names for an operation.

mod conforming;

use std::sync::LazyLock;

use http::{Method, StatusCode};
use serde_json::Value;

use super::Answer;

/// The reference, as it is committed.
static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../../openapi.json")).expect("a JSON document"));

/// Stops the test when the reference does not name such an answer for this operation. Of a path without an operation it
/// says nothing.
pub(super) fn check(method: &Method, path: &str, answer: &Answer) {
    // A HEAD is answered as the GET.
    let verb = if method == Method::HEAD { "get".to_owned() } else { method.as_str().to_ascii_lowercase() };
    let path = path.split('?').next().unwrap_or_default();
    let Some(operation) = operation(path, &verb) else { return };
    let status = answer.status;
    let named = &operation["responses"][status.as_str()];
    let detail = answer.at("/detail");
    assert!(!named.is_null(), "the reference of {method} {path} does not name the status {status}: {detail}");
    if status.is_client_error() || status.is_server_error() {
        let code = answer.at("/code");
        let codes = codes(named, status);
        assert!(
            code.is_null() || codes.contains(&code),
            "the reference of {method} {path} does not name the code {code} ({status}): {detail}"
        );
    }
    let is_json = answer.header("content-type").is_some_and(|kind| kind.starts_with("application/json"));
    let is_compressed = answer.header("content-encoding").is_some();
    if status.is_success() && is_json && !is_compressed && !answer.body.is_empty() {
        let schema = &named["content"]["application/json"]["schema"];
        let fault = conforming::fault(&DOCUMENT, schema, &answer.json(), "");
        assert!(
            fault.is_none(),
            "{method} {path} is not as the reference says: {}",
            fault.unwrap_or_default()
        );
    }
}

/// The operation of the template that fits: of several, the one with the fewest variables.
fn operation(path: &str, verb: &str) -> Option<&'static Value> {
    let templates = DOCUMENT["paths"].as_object()?.iter();
    let fitting = templates.filter(|(template, _)| fits(template, path));
    let (_, operations) = fitting.min_by_key(|(template, _)| template.matches('{').count())?;
    operations.get(verb)
}

fn fits(template: &str, path: &str) -> bool {
    let (template, path): (Vec<&str>, Vec<&str>) = (template.split('/').collect(), path.split('/').collect());
    template.len() == path.len()
        && template.iter().zip(&path).all(|(name, part)| name.starts_with('{') || name == part)
}

/// The codes of the errors with a status.
fn codes(named: &Value, status: StatusCode) -> &'static [Value] {
    let pointer =
        named["$ref"].as_str().and_then(|reference| reference.strip_prefix('#')).unwrap_or_default();
    let response =
        DOCUMENT.pointer(pointer).unwrap_or_else(|| panic!("{status} has no description: {named}"));
    let schema = &response["content"]["application/problem+json"]["schema"];
    schema["properties"]["code"]["enum"].as_array().map(Vec::as_slice).unwrap_or_default()
}
