//! A page or asset that never changes while the process runs, and its headers.

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
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
/// Caches keep it for a day: it changes only with a release.
pub(super) const DAY: &str = "public, max-age=86400";

/// Bytes that are served with an `ETag`, so that a second request costs no transfer.
#[derive(Clone, Debug)]
pub(super) struct File {
    content: Bytes,
    tag: HeaderValue,
    content_type: HeaderValue,
    policy: &'static str,
    caching: &'static str,
}

impl File {
    pub(super) fn new(content: impl Into<Bytes>, content_type: &str, policy: &'static str) -> Self {
        let content = content.into();
        let tag = format!("\"{:.32}\"", hex(&Sha256::digest(&content)));
        Self {
            // Both are plain ASCII; a default takes the place of any other value.
            tag: HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\"")),
            content_type: HeaderValue::from_str(content_type)
                .unwrap_or(HeaderValue::from_static("application/octet-stream")),
            content,
            policy,
            caching: REVALIDATE,
        }
    }

    pub(super) fn html(content: String) -> Self {
        Self::new(content, "text/html; charset=utf-8", PAGE_POLICY)
    }

    #[must_use]
    pub(super) fn cached(mut self, caching: &'static str) -> Self {
        self.caching = caching;
        self
    }

    /// The file, or 304 when the caller has it already.
    pub(super) fn answer(&self, request: &HeaderMap) -> Response {
        if self.is_cached_by(request) {
            return (StatusCode::NOT_MODIFIED, self.headers()).into_response();
        }
        self.answer_with(StatusCode::OK)
    }

    pub(super) fn answer_with(&self, status: StatusCode) -> Response {
        let mut response = (status, self.headers(), self.content.clone()).into_response();
        response.headers_mut().insert(CONTENT_TYPE, self.content_type.clone());
        response
    }

    fn headers(&self) -> HeaderMap {
        HeaderMap::from_iter([
            (ETAG, self.tag.clone()),
            (CACHE_CONTROL, HeaderValue::from_static(self.caching)),
            (CONTENT_SECURITY_POLICY, HeaderValue::from_static(self.policy)),
            (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
            (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        ])
    }

    /// `If-None-Match` compares weakly (RFC 9110, 13.1.2): a proxy that compressed the file marks its tag `W/`.
    fn is_cached_by(&self, request: &HeaderMap) -> bool {
        let tags = request.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        tags.flat_map(|list| list.split(','))
            .map(str::trim)
            .any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag).as_bytes() == self.tag.as_bytes())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
