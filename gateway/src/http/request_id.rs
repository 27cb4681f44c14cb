//! The id of a request: the caller's own, or a new one. Every response and every call to a service carries it.

use std::sync::Arc;

use axum::body::Body;
use http::Request;

/// The longest id of a caller that is taken over.
const MAX_LENGTH: usize = 128;

/// The id of the request that is being handled. The outermost layer puts it into the request's extensions.
#[derive(Clone)]
pub(super) struct RequestId(pub Arc<str>);

/// The caller's own id, when it is 1 to 128 visible ASCII characters.
pub(super) fn sent(request: &Request<Body>) -> Option<String> {
    let value = request.headers().get("x-request-id")?;
    let usable = (1..=MAX_LENGTH).contains(&value.len()) && value.as_bytes().iter().all(u8::is_ascii_graphic);
    value.to_str().ok().filter(|_| usable).map(str::to_owned)
}

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for RequestId {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut http::request::Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_else(|| Self("".into())))
    }
}
