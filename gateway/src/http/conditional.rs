//! Conditional requests: `ETag` is the version of a record; `If-None-Match` saves reading what has not changed, and
//! `If-Match` refuses a change of a record that somebody else has changed meanwhile.

use chassis_transcode::contract::Operation;
use chassis_transcode::path_segment;
use http::{HeaderMap, HeaderValue, Method, header};
use proto::api::Precondition;

use super::problem::Refusal;

/// The most tags that one request may name.
const MAX_TAGS: usize = 32;

/// The `ETag` of a record with this version.
pub(super) fn etag(version: i64) -> Option<HeaderValue> {
    HeaderValue::try_from(format!("\"{version}\"")).ok()
}

/// Whether the caller of a read has this version already.
pub(super) fn is_known(headers: &HeaderMap, version: i64) -> bool {
    let tags = tags(headers, &header::IF_NONE_MATCH);
    // Weak and strong tags are the same here: the record is either that version or not.
    tags.iter().any(|tag| *tag == "*" || number(tag.trim_start_matches("W/")) == Some(version))
}

/// What `If-Match` of a write asks for. `path` has the raw values of the path's variables.
pub(super) fn precondition(
    operation: &Operation,
    method: &Method,
    headers: &HeaderMap,
    path: &[(&str, &str)],
) -> Result<Option<Precondition>, Refusal> {
    if !headers.contains_key(header::IF_MATCH) || matches!(*method, Method::GET | Method::HEAD) {
        return Ok(None);
    }
    let tags = tags(headers, &header::IF_MATCH);
    if tags.is_empty() || tags.len() > MAX_TAGS {
        let detail = "If-Match must have the ETag of the version that you know, for example \"3\"";
        return Err(Refusal::bad_header("If-Match", detail));
    }
    // `*` asks that the record exists, which every operation does.
    if tags.contains(&"*") {
        return Ok(None);
    }
    let Some(target) = &operation.target else {
        let detail = "If-Match is not possible here: the path names no record with a version";
        return Err(Refusal::bad_header("If-Match", detail));
    };
    let raw = path.iter().find(|(name, _)| *name == target.variable).map_or("", |(_, value)| value);
    let named = path_segment(raw).unwrap_or_default();
    let id = chassis_base::id::parse(&named).map(|id| id.to_string());
    Ok(Some(Precondition {
        // Some records have a code or a name for an id.
        record_id: id.unwrap_or_else(|| named.into_owned()),
        kinds: target.kinds.clone(),
        // What is not a tag of ours matches no version.
        versions: tags.into_iter().filter_map(number).collect(),
    }))
}

/// The tags of a header, which may come more than once. Our tags have no comma.
fn tags<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Vec<&'a str> {
    // A value that is not text is not a tag of ours.
    let values = headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("?"));
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|tag| !tag.is_empty()).collect()
}

/// The version in a strong tag. Quotes may be missing, since many clients drop them.
fn number(tag: &str) -> Option<i64> {
    let quoted = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
    quoted.unwrap_or(tag).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::IF_NONE_MATCH, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn a_version_is_known_by_any_of_its_tags() {
        for known in [&["\"3\""][..], &["W/\"3\""], &["\"1\", \"3\""], &["\"1\"", "3"], &["*"]] {
            assert!(is_known(&headers(known), 3), "{known:?}");
        }
        for unknown in [&[][..], &["\"4\""], &["\"33\""], &["nonsense"], &["\""], &[""]] {
            assert!(!is_known(&headers(unknown), 3), "{unknown:?}");
        }
        assert_eq!(etag(3).unwrap(), "\"3\"");
    }
}
