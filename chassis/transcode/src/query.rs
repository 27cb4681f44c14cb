//! Query strings, forms and path segments. Handles percent escapes and no other part of a URL.

use std::borrow::Cow;

use super::malformed::Malformed;
use super::text::put_string;

type Pair<'a> = (Cow<'a, str>, Cow<'a, str>);

/// The decoded pairs of a query string, in order. A name without `=` has an empty value.
pub(crate) fn pairs(query: &str) -> impl Iterator<Item = Result<Pair<'_>, Malformed>> {
    decoded(query, "query")
}

/// Converts a form, as a browser posts it, to a JSON object whose values are all strings.
pub fn form_as_json(form: &[u8]) -> Result<Vec<u8>, Malformed> {
    let form = std::str::from_utf8(form).map_err(|_| Malformed::new("The form is not valid UTF-8."))?;
    let mut json = vec![b'{'];
    for pair in decoded(form, "form") {
        let (name, value) = pair?;
        if json.len() > 1 {
            json.push(b',');
        }
        put_string(&name, &mut json);
        json.push(b':');
        put_string(&value, &mut json);
    }
    json.push(b'}');
    Ok(json)
}

fn decoded<'a>(text: &'a str, part: &'static str) -> impl Iterator<Item = Result<Pair<'a>, Malformed>> {
    text.split('&').filter(|pair| !pair.is_empty()).map(move |pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Ok((decode(name, part, true)?, decode(value, part, true)?))
    })
}

pub fn path_segment(raw: &str) -> Result<Cow<'_, str>, Malformed> {
    decode(raw, "path", false)
}

fn decode<'a>(raw: &'a str, part: &str, plus_is_space: bool) -> Result<Cow<'a, str>, Malformed> {
    if !raw.bytes().any(|byte| byte == b'%' || (plus_is_space && byte == b'+')) {
        return Ok(Cow::Borrowed(raw));
    }
    let mut decoded = Vec::with_capacity(raw.len());
    let mut rest = raw.bytes();
    while let Some(byte) = rest.next() {
        decoded.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let (Some(high), Some(low)) = (digit(), digit()) else {
                    return Err(Malformed::new(format!(
                        "The {part} has a `%` that is not followed by two hexadecimal digits; write `%25` for a percent sign."
                    )));
                };
                (high << 4 | low).to_le_bytes()[0]
            }
            b'+' if plus_is_space => b' ',
            other => other,
        });
    }
    String::from_utf8(decoded)
        .map(Cow::Owned)
        .map_err(|_| Malformed::new(format!("The {part} has percent escapes that are not valid UTF-8.")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(query: &str) -> Vec<(String, String)> {
        pairs(query).map(|pair| pair.unwrap()).map(|(n, v)| (n.into_owned(), v.into_owned())).collect()
    }

    #[test]
    fn pairs_are_split_and_decoded() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            all("a=1&&b=x+y%26%3d%C3%a9&c&d=&=e&%61=b=c"),
            [
                pair("a", "1"),
                pair("b", "x y&=é"),
                pair("c", ""),
                pair("d", ""),
                pair("", "e"),
                pair("a", "b=c")
            ]
        );
        assert!(all("").is_empty());
        assert_eq!(path_segment("a+b%2F").unwrap(), "a+b/");
    }

    #[test]
    fn a_form_becomes_an_object_of_texts() {
        let json = |form: &[u8]| String::from_utf8(form_as_json(form).unwrap()).unwrap();
        assert_eq!(
            json(b"name=J%C3%BCrgen+%22J%22&agree=on&empty="),
            r#"{"name":"Jürgen \"J\"","agree":"on","empty":""}"#
        );
        assert_eq!(json(b""), "{}");
        for wrong in [&b"a=%zz"[..], b"\xff", b"a=%ff"] {
            assert!(form_as_json(wrong).unwrap_err().detail.starts_with("The form"));
        }
    }

    proptest::proptest! {
        #[test]
        fn any_form_is_json_or_malformed(form in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..40)) {
            if let Ok(json) = form_as_json(&form) {
                let object = serde_json::from_slice::<serde_json::Value>(&json).unwrap();
                proptest::prop_assert!(object.as_object().unwrap().values().all(serde_json::Value::is_string));
            }
        }
    }

    #[test]
    fn bad_escapes_are_malformed() {
        for query in ["a=%", "a=%4", "a=%zz", "%=1", "a=%ff", "a=%c3", "b=%+1", "a=%c3%28"] {
            assert!(pairs(query).any(|pair| pair.is_err()), "{query}");
        }
        assert!(path_segment("%e9").is_err());
    }
}
