//! A page or asset that never changes while the process runs, and its headers.

use std::io::Write;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use sha2::{Digest, Sha256};

/// Nothing may be loaded or run: for what is not a page.
pub const NO_CONTENT_POLICY: &str = "default-src 'none'; frame-ancestors 'none'";
/// A page with our own style sheet and nothing else.
pub(super) const PAGE_POLICY: &str = "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'";

/// Caches keep it, and revalidate it for each use.
pub(super) const REVALIDATE: &str = "public, no-cache";

/// Bytes that are served with an `ETag`, so that a second request costs no transfer, and compressed to whoever takes that.
#[derive(Clone, Debug)]
pub(super) struct File {
    plain: Encoded,
    gzip: Encoded,
    content_type: HeaderValue,
    policy: &'static str,
}

/// One encoding of a file. Each has a tag of its own (RFC 9110, 8.8.3.3).
#[derive(Clone, Debug)]
struct Encoded {
    content: Bytes,
    tag: HeaderValue,
    coding: Option<HeaderValue>,
}

impl Encoded {
    fn new(content: Bytes, coding: Option<HeaderValue>) -> Self {
        let tag = format!("\"{:.32}\"", hex(&Sha256::digest(&content)));
        // Plain ASCII; a default takes the place of any other value.
        Self { tag: HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\"")), content, coding }
    }
}

impl File {
    pub(super) fn new(content: impl Into<Bytes>, content_type: &str, policy: &'static str) -> Self {
        let plain = content.into();
        Self {
            gzip: Encoded::new(compressed(&plain), Some(HeaderValue::from_static("gzip"))),
            plain: Encoded::new(plain, None),
            // Plain ASCII; a default takes the place of any other value.
            content_type: HeaderValue::from_str(content_type)
                .unwrap_or(HeaderValue::from_static("application/octet-stream")),
            policy,
        }
    }

    pub(super) fn html(content: String) -> Self {
        Self::new(content, "text/html; charset=utf-8", PAGE_POLICY)
    }

    /// The file, or 304 when the caller has it already.
    pub(super) fn answer(&self, request: &HeaderMap) -> Response {
        if self.is_cached_by(request) {
            return (StatusCode::NOT_MODIFIED, self.headers(self.encoded_for(request))).into_response();
        }
        self.answer_with(StatusCode::OK, request)
    }

    pub(super) fn answer_with(&self, status: StatusCode, request: &HeaderMap) -> Response {
        let encoded = self.encoded_for(request);
        let mut response = (status, self.headers(encoded), encoded.content.clone()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, self.content_type.clone());
        if let Some(coding) = &encoded.coding {
            headers.insert(CONTENT_ENCODING, coding.clone());
        }
        response
    }

    fn encoded_for(&self, request: &HeaderMap) -> &Encoded {
        if takes_gzip(request) { &self.gzip } else { &self.plain }
    }

    fn headers(&self, encoded: &Encoded) -> HeaderMap {
        HeaderMap::from_iter([
            (ETAG, encoded.tag.clone()),
            (CACHE_CONTROL, HeaderValue::from_static(REVALIDATE)),
            (CONTENT_SECURITY_POLICY, HeaderValue::from_static(self.policy)),
            (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
            (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
            (VARY, HeaderValue::from_static("Accept-Encoding")),
        ])
    }

    /// `If-None-Match` compares weakly (RFC 9110, 13.1.2): a proxy that compressed the file marks its tag `W/`.
    fn is_cached_by(&self, request: &HeaderMap) -> bool {
        let tags = request.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        tags.flat_map(|list| list.split(',')).map(str::trim).any(|tag| {
            let tag = tag.strip_prefix("W/").unwrap_or(tag).as_bytes();
            tag == b"*" || tag == self.plain.tag.as_bytes() || tag == self.gzip.tag.as_bytes()
        })
    }
}

/// Whether the caller names gzip without refusing it. Programs that say nothing get the file as it is.
fn takes_gzip(request: &HeaderMap) -> bool {
    let lists = request.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let is_refused =
            parts.any(|part| part.strip_prefix("q=").is_some_and(|q| q.trim_matches(['0', '.']).is_empty()));
        is_gzip && !is_refused
    })
}

fn compressed(content: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory cannot fail.
    let _ = encoder.write_all(content);
    encoder.finish().unwrap_or_default().into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
