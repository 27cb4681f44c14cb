//! Parts of earlier answers in a later operation: `{"$from": "0/data/id"}` in its body, `{0/data/id}` in its path.
//!
//! JSON is taken apart only where it has to be: numbers stay as they were written.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

use proto::gateway::BatchAnswer;
use serde_json::value::RawValue;

const FROM: &str = "$from";
/// The deepest nesting that is looked into, which is that of a body.
const MAX_DEPTH: usize = 32;

/// Whether a body may use an earlier answer.
pub(super) fn is_used(body: &str) -> bool {
    body.contains(FROM)
}

/// The answers so far.
#[derive(Default)]
pub(super) struct Earlier(Vec<BatchAnswer>);

impl Earlier {
    pub(super) fn push(&mut self, answer: BatchAnswer) {
        self.0.push(answer);
    }

    pub(super) fn into_answers(self) -> Vec<BatchAnswer> {
        self.0
    }

    /// The path with the parts that it names. The error says what is wrong.
    pub(super) fn in_path<'p>(&self, path: &'p str) -> Result<Cow<'p, str>, String> {
        let mut whole = Cow::Borrowed(path);
        while let Some((before, rest)) = whole.split_once('{') {
            let (name, after) = rest.split_once('}').ok_or("has a `{` without a `}`")?;
            let value = self.part(name)?;
            let text = match value.as_bytes() {
                [b'"', ..] => serde_json::from_str(value).map_err(|error| error.to_string())?,
                [b'-' | b'0'..=b'9', ..] => value.to_owned(),
                _ => return Err(format!("needs a text or a number, and `{name}` is neither")),
            };
            whole = Cow::Owned(format!("{before}{}{after}", escaped(&text)));
        }
        Ok(whole)
    }

    /// The body with the parts that it names.
    pub(super) fn in_body(&self, body: &str) -> Result<String, String> {
        if !is_used(body) {
            return Ok(body.to_owned());
        }
        let mut replaced = String::with_capacity(body.len());
        self.replace(body, MAX_DEPTH, &mut replaced)?;
        Ok(replaced)
    }

    fn replace(&self, json: &str, depth: usize, out: &mut String) -> Result<(), String> {
        let text = json.trim();
        let read = |error: serde_json::Error| error.to_string();
        if depth == 0 || !is_used(text) {
            out.push_str(text);
        } else if text.starts_with('{') {
            let entries: BTreeMap<String, &RawValue> = serde_json::from_str(text).map_err(read)?;
            if let (Some(name), 1) = (entries.get(FROM), entries.len()) {
                let name: String = serde_json::from_str(name.get())
                    .map_err(|_| format!("needs a text such as `0/data/id` as `{FROM}`"))?;
                out.push_str(self.part(&name)?);
                return Ok(());
            }
            for (index, (name, value)) in entries.iter().enumerate() {
                out.push(if index == 0 { '{' } else { ',' });
                out.push_str(&serde_json::Value::from(name.as_str()).to_string());
                out.push(':');
                self.replace(value.get(), depth - 1, out)?;
            }
            out.push('}');
        } else if text.starts_with('[') {
            let entries: Vec<&RawValue> = serde_json::from_str(text).map_err(read)?;
            for (index, value) in entries.iter().enumerate() {
                out.push(if index == 0 { '[' } else { ',' });
                self.replace(value.get(), depth - 1, out)?;
            }
            out.push(']');
        } else {
            out.push_str(text);
        }
        Ok(())
    }

    /// The part of an answer that `0/data/id` names, as JSON.
    fn part(&self, name: &str) -> Result<&str, String> {
        let mut names = name.split('/');
        let place = names.next().and_then(|place| place.parse::<usize>().ok());
        let place = place.ok_or_else(|| {
            format!("needs the number of an earlier operation first, as in `0/data/id`; it has `{name}`")
        })?;
        let answer = self
            .0
            .get(place)
            .ok_or_else(|| format!("names the answer {place}, which is not an earlier one"))?;
        let mut json = answer.body.as_deref().unwrap_or("null");
        for name in names {
            let missing = || format!("names `{name}`, which the answer {place} does not have");
            json = match json.trim_start().chars().next() {
                Some('{') => {
                    let entries: BTreeMap<String, &RawValue> =
                        serde_json::from_str(json).map_err(|_| missing())?;
                    entries.get(name).ok_or_else(missing)?.get()
                }
                Some('[') => {
                    let entries: Vec<&RawValue> = serde_json::from_str(json).map_err(|_| missing())?;
                    let place = name.parse::<usize>().ok().and_then(|place| entries.get(place).copied());
                    place.ok_or_else(missing)?.get()
                }
                _ => return Err(missing()),
            };
        }
        Ok(json)
    }
}

/// A text as a part of a path or of a query.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(byte.into());
        } else {
            // Writing to a String cannot fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn earlier() -> Earlier {
        let answer =
            |body: Option<&str>| BatchAnswer { body: body.map(str::to_owned), ..BatchAnswer::default() };
        let mut earlier = Earlier::default();
        earlier.push(answer(Some(
            r#"{"data":{"id":"a/b","total":12.50,"rows":[{"id":"r0"},{"id":"r1"}]},"meta":{}}"#,
        )));
        earlier.push(answer(None));
        earlier
    }

    #[test]
    fn a_part_takes_the_place_of_its_name_as_it_was_written() {
        let earlier = earlier();
        let body = |text: &str| earlier.in_body(text).unwrap();
        assert_eq!(
            body(r#"{"client_id":{"$from":"0/data/id"},"price":1.10}"#),
            r#"{"client_id":"a/b","price":1.10}"#
        );
        assert_eq!(
            body(r#"{"rows":[{"a":{"$from":"0/data/rows/1/id"}}, 0.10]}"#),
            r#"{"rows":[{"a":"r1"},0.10]}"#
        );
        assert_eq!(body(r#"{"total":{"$from":"0/data/total"}}"#), r#"{"total":12.50}"#);
        assert_eq!(body(r#"{"text":"$from"}"#), r#"{"text":"$from"}"#);
        assert_eq!(body(r#"{"x": 1.00}"#), r#"{"x": 1.00}"#);
        assert_eq!(
            earlier.in_path("/v1/invoices/{0/data/id}/rows?total={0/data/total}").unwrap(),
            "/v1/invoices/a%2Fb/rows?total=12.50"
        );
        assert_eq!(earlier.in_path("/v1/invoices").unwrap(), "/v1/invoices");
    }

    #[test]
    fn what_is_not_there_is_named() {
        let earlier = earlier();
        for (name, told) in [
            ("2/data/id", "the answer 2"),
            ("0/data/none", "`none`"),
            ("0/data/rows/2", "`2`"),
            ("0/data/rows/x", "`x`"),
            ("0/data/id/x", "`x`"),
            ("1/data", "`data`"),
            ("data/id", "number of an earlier operation"),
            ("", "number of an earlier operation"),
            ("-1/data", "number of an earlier operation"),
        ] {
            let error = earlier.in_body(&format!(r#"{{"a":{{"$from":"{name}"}}}}"#)).unwrap_err();
            assert!(error.contains(told), "{name}: {error}");
            assert!(earlier.in_path(&format!("/v1/{{{name}}}")).is_err(), "{name}");
        }
        assert!(earlier.in_body(r#"{"a":{"$from":3}}"#).unwrap_err().contains("$from"));
        assert!(earlier.in_path("/v1/{0/data/rows}").unwrap_err().contains("neither"));
        assert!(earlier.in_path("/v1/{0/data").unwrap_err().contains('}'));
    }
}
