//! Cross-origin requests: pages on other hosts may call the API with a key of their own.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};

/// Headers that a page may read from an answer.
const EXPOSED: &str = "Dry-Run, ETag, Location, Preference-Applied, RateLimit, RateLimit-Policy, Retry-After, X-Idempotent-Replay, X-Request-Id";
/// Headers that a page may send.
const ALLOWED: &str =
    "Authorization, Content-Type, Dry-Run, Idempotency-Key, If-Match, If-None-Match, Prefer, X-Request-Id";
/// How long a browser may cache the answer to a preflight, in seconds.
const MAX_AGE: &str = "600";

/// Which origins may call.
pub enum Cors {
    Any,
    Only(Vec<HeaderValue>),
}

impl Cors {
    /// `*` among the origins allows every origin; an empty list allows none.
    pub fn new(origins: &[String]) -> Result<Self, String> {
        if origins.iter().any(|origin| origin.trim() == "*") {
            return Ok(Self::Any);
        }
        let named = origins.iter().map(|origin| origin.trim()).filter(|origin| !origin.is_empty());
        let parsed = named.map(|origin| {
            HeaderValue::try_from(origin).map_err(|_| format!("CORS_ORIGINS: `{origin}` is not an origin"))
        });
        Ok(Self::Only(parsed.collect::<Result<_, _>>()?))
    }

    fn allowed_origin(&self, origin: Option<&HeaderValue>) -> Option<HeaderValue> {
        match self {
            Self::Any => Some(HeaderValue::from_static("*")),
            Self::Only(allowed) => origin.filter(|origin| allowed.contains(origin)).cloned(),
        }
    }

    /// Adds to an answer what a browser needs to hand it to the page.
    pub fn allow(&self, origin: Option<&HeaderValue>, headers: &mut HeaderMap) {
        if matches!(self, Self::Only(_)) {
            headers.append(header::VARY, HeaderValue::from_static("Origin"));
        }
        if let (Some(_), Some(allowed)) = (origin, self.allowed_origin(origin)) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
        }
    }

    /// The answer to OPTIONS where no page of another site may call.
    pub fn methods(allow: &HeaderValue) -> Response {
        let mut response = StatusCode::NO_CONTENT.into_response();
        response.headers_mut().insert(header::ALLOW, allow.clone());
        response
    }

    /// The answer to OPTIONS: which methods there are, and for a browser's question whether it may use them.
    pub fn preflight(&self, request: &Request<Body>, allow: &HeaderValue) -> Response {
        let mut response = Self::methods(allow);
        let headers = response.headers_mut();
        if request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, allow.clone());
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(ALLOWED));
            headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
        }
        response
    }
}
