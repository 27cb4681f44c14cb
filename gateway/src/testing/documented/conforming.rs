//! Whether a JSON value is as a schema of the reference says. Knows what our schemas consist of, without limits and patterns:
//! answers break a reference by another type, an unknown choice, a missing name or an empty text in place of an id.

use serde_json::Value;

/// The first place where a value is not as its schema says, and why. `None`: it is.
pub(super) fn fault(document: &Value, schema: &Value, value: &Value, place: &str) -> Option<String> {
    let of = |schema: &Value, value: &Value, place: &str| fault(document, schema, value, place);
    if let Some(target) = schema["$ref"].as_str() {
        let target = document.pointer(target.trim_start_matches('#'));
        let found = target.unwrap_or_else(|| panic!("{schema} leads nowhere"));
        if let Some(why) = of(found, value, place) {
            return Some(why);
        }
    }
    let alternatives = schema["anyOf"].as_array();
    if alternatives.is_some_and(|choices| choices.iter().all(|one| of(one, value, place).is_some())) {
        return Some(format!("{place} fits none of {}: {value}", schema["anyOf"]));
    }
    if !has_type(&schema["type"], value) {
        return Some(format!("{place} is not {}: {value}", schema["type"]));
    }
    let is_choice = |choices: &Vec<Value>| choices.contains(value);
    if !schema["enum"].as_array().is_none_or(is_choice) {
        return Some(format!("{place} is none of {}: {value}", schema["enum"]));
    }
    if let (Some(format), Some(text)) = (schema["format"].as_str(), value.as_str())
        && !has_format(format, text)
    {
        return Some(format!("{place} is not a {format}: {value}"));
    }
    if let Some(fields) = value.as_object() {
        let mut required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        if let Some(name) = required.find(|name| !fields.contains_key(*name)) {
            return Some(format!("{place} has no {name}"));
        }
        let known =
            fields.iter().filter_map(|(name, value)| Some((schema["properties"].get(name)?, name, value)));
        let mut faults = known.map(|(schema, name, value)| of(schema, value, &format!("{place}/{name}")));
        return faults.find_map(|fault| fault);
    }
    let entries = value.as_array().into_iter().flatten().enumerate();
    let mut faults = entries.map(|(index, entry)| of(&schema["items"], entry, &format!("{place}/{index}")));
    faults.find_map(|fault| fault)
}

fn has_type(named: &Value, value: &Value) -> bool {
    let is = |kind: &Value| match kind.as_str().unwrap_or_default() {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "null" => value.is_null(),
        other => panic!("the reference names the type {other}"),
    };
    match named {
        Value::Null => true,
        Value::Array(kinds) => kinds.iter().any(is),
        kind => is(kind),
    }
}

fn has_format(format: &str, text: &str) -> bool {
    match format {
        "uuid" => text.len() == 36 && uuid::Uuid::try_parse(text).is_ok(),
        "date" => text.len() == 10 && is_like(text, "0000-00-00"),
        "date-time" => is_like(text, "0000-00-00T00:00:00.000Z"),
        _ => true,
    }
}

/// Whether a text has the form of another, which has zeros for digits.
fn is_like(text: &str, form: &str) -> bool {
    let fits = |(have, want): (u8, u8)| if want == b'0' { have.is_ascii_digit() } else { have == want };
    text.len() == form.len() && text.bytes().zip(form.bytes()).all(fits)
}
