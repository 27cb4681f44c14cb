//! The body of a response while it is sent. Its request is in progress until the client has taken the last part.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use super::activity::InProgress;

/// The largest part handed to the connection: a client that takes less than this in `WRITE_TIMEOUT_MS` is too slow.
const MAX_PART: usize = 64 << 10;

pub(super) struct Watched {
    inner: Body,
    /// The rest of a larger frame.
    rest: Bytes,
    request: InProgress,
}

impl Watched {
    pub(super) fn new(inner: Body, request: InProgress) -> Self {
        request.hand_over();
        Self { inner, rest: Bytes::new(), request }
    }

    fn part(&mut self, mut bytes: Bytes) -> Frame<Bytes> {
        self.rest = bytes.split_off(bytes.len().min(MAX_PART));
        self.request.hand_over();
        Frame::data(bytes)
    }
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.request.taken();
        if !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            return Poll::Ready(Some(Ok(self.part(rest))));
        }
        let next = Pin::new(&mut self.inner).poll_frame(cx);
        next.map(|frame| {
            frame.map(|frame| {
                frame.map(|frame| frame.into_data().map_or_else(|other| other, |data| self.part(data)))
            })
        })
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (inner, rest) = (self.inner.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(inner.lower().saturating_add(rest));
        hint
    }
}
