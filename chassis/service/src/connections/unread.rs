//! The part of a request's body that is unread when the response is ready, as when a request is refused by its head.
//!
//! Over HTTP/1 the next request follows it on the connection, so it is read and discarded, or the response closes the
//! connection. Otherwise the next request of the client would fail without a response.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http::{Request, header};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};

/// The most bytes that are discarded to keep a connection.
const DISCARD_MAX: usize = 4 << 20;
/// How long a response waits for the discarded bytes.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(2);

/// Receives the body of a request when its handler drops it before the end.
pub(super) struct Unread {
    left: Arc<Mutex<Option<Body>>>,
    /// The client sends the body only after `100 Continue`.
    expects_continue: bool,
}

impl Unread {
    /// Watches the body of a request.
    pub(super) fn watch(request: Request<Body>) -> (Request<Body>, Self) {
        let left = Arc::new(Mutex::new(None));
        let expects_continue = request.headers().contains_key(header::EXPECT);
        let request = request.map(|body| {
            if body.is_end_stream() {
                return body;
            }
            Body::new(RequestBody { inner: Some(body), left: Arc::clone(&left) })
        });
        (request, Self { left, expects_continue })
    }

    /// Reads and discards the rest of the body. `false` when it is too large or does not arrive in time.
    pub(super) async fn discard(self) -> bool {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut body) = left else { return true };
        if self.expects_continue || body.size_hint().lower() > DISCARD_MAX as u64 {
            return false;
        }
        let read_to_end = async {
            let mut discarded = 0;
            while let Some(frame) = body.frame().await {
                let Ok(frame) = frame else { return false };
                discarded += frame.data_ref().map_or(0, Bytes::len);
                if discarded > DISCARD_MAX {
                    return false;
                }
            }
            true
        };
        tokio::time::timeout(DISCARD_TIMEOUT, read_to_end).await.unwrap_or(false)
    }
}

/// The body of a request as its handler receives it. When it is dropped before its end, [`Unread`] gets the rest.
struct RequestBody {
    inner: Option<Body>,
    left: Arc<Mutex<Option<Body>>>,
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(inner) = &mut self.inner else { return Poll::Ready(None) };
        let next = Pin::new(inner).poll_frame(cx);
        if matches!(next, Poll::Ready(None | Some(Err(_)))) {
            self.inner = None;
        }
        next
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let Some(body) = self.inner.take().filter(|body| !body.is_end_stream()) {
            *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(body);
        }
    }
}
