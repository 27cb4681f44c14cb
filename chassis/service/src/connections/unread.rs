//! What of a request's body nobody has read when the answer is there: a refusal is decided from the head alone.
//!
//! Over HTTP/1 the next request comes behind it, so it is taken off the connection, or the answer says that the connection
//! ends. Otherwise the client would learn of it from its next request, which then fails without an answer.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http::{Request, header};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};

/// Most that is taken off a connection to keep it.
const DISCARD_MAX: usize = 4 << 20;
/// How long an answer waits for that.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(2);

/// Where the body of a request is left when it is not needed any more.
pub(super) struct Unread {
    left: Arc<Mutex<Option<Body>>>,
    /// The body comes only once it is asked for.
    held_back: bool,
}

impl Unread {
    /// Watches the body of a request.
    pub(super) fn watch(request: Request<Body>) -> (Request<Body>, Self) {
        let left = Arc::new(Mutex::new(None));
        let held_back = request.headers().contains_key(header::EXPECT);
        let request = request.map(|body| {
            if body.is_end_stream() {
                return body;
            }
            Body::new(RequestBody { inner: Some(body), left: Arc::clone(&left) })
        });
        (request, Self { left, held_back })
    }

    /// Takes what is left off the connection; false when there is too much of it, or it does not come.
    pub(super) async fn discard(self) -> bool {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut body) = left else { return true };
        if self.held_back || body.size_hint().lower() > DISCARD_MAX as u64 {
            return false;
        }
        let to_the_end = async {
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
        tokio::time::timeout(DISCARD_TIMEOUT, to_the_end).await.unwrap_or(false)
    }
}

/// The body of a request as its handler has it; dropped before its end, it is left for [`Unread`].
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
