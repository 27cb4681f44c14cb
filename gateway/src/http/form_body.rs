//! The body of a form, as its parser may read it. The parser takes all that has arrived before it looks for parts, and holds
//! it until a head is complete. So without a limit an upload could take as much memory as its client likes, of which only
//! a little is reserved.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::{Stream, StreamExt};

/// The parser needs more bytes than it may take.
#[derive(Debug)]
pub(super) struct TooMuch;

/// How many bytes the parser may still take.
#[derive(Clone)]
pub(super) struct Allowance(Arc<Shared>);

struct Shared {
    left: AtomicUsize,
    /// Whether there was more than that.
    is_short: AtomicBool,
}

impl Allowance {
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(Shared { left: AtomicUsize::new(bytes), is_short: AtomicBool::new(false) }))
    }

    /// Allows this many bytes from now on.
    pub(super) fn set(&self, bytes: usize) {
        self.0.left.store(bytes, Ordering::Relaxed);
    }

    /// Does a step of the parser with the bytes that it may take.
    pub(super) async fn within<T>(&self, step: impl Future<Output = T>) -> Result<T, TooMuch> {
        let mut step = pin!(step);
        poll_fn(|context| {
            self.0.is_short.store(false, Ordering::Relaxed);
            match step.as_mut().poll(context) {
                Poll::Ready(done) => Poll::Ready(Ok(done)),
                Poll::Pending if self.0.is_short.load(Ordering::Relaxed) => Poll::Ready(Err(TooMuch)),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// Takes up to this many bytes.
    fn take(&self, bytes: usize) -> usize {
        let left = self.0.left.load(Ordering::Relaxed);
        let taken = left.min(bytes);
        self.set(left - taken);
        taken
    }
}

/// A body of which no more is read than is allowed.
pub(super) struct FormBody<S> {
    body: S,
    /// What has arrived and was not taken yet.
    arrived: Bytes,
    allowance: Allowance,
}

impl<S> FormBody<S> {
    pub(super) fn new(body: S, allowance: Allowance) -> Self {
        Self { body, arrived: Bytes::new(), allowance }
    }
}

impl<S, E> Stream for FormBody<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
{
    type Item = Result<Bytes, E>;

    /// Pending when no more is allowed, so that the parser looks at what it has. If that is not enough for it, `within` ends
    /// the step; nobody else wakes it.
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while self.arrived.is_empty() {
            match ready!(self.body.poll_next_unpin(context)) {
                Some(Ok(data)) => self.arrived = data,
                other => return Poll::Ready(other),
            }
        }
        let taken = self.allowance.take(self.arrived.len());
        if taken == 0 {
            self.allowance.0.is_short.store(true, Ordering::Relaxed);
            return Poll::Pending;
        }
        Poll::Ready(Some(Ok(self.arrived.split_to(taken))))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::stream;

    use super::*;

    fn body(chunks: &[&'static [u8]]) -> impl Stream<Item = Result<Bytes, Infallible>> + Unpin {
        let chunks: Vec<_> = chunks.iter().map(|chunk| Ok(Bytes::from_static(chunk))).collect();
        stream::iter(chunks)
    }

    #[tokio::test]
    async fn a_body_is_taken_up_to_what_is_allowed() {
        let allowance = Allowance::new(5);
        let mut form = FormBody::new(body(&[b"abc", b"", b"def"]), allowance.clone());
        for expected in ["abc", "de"] {
            assert_eq!(allowance.within(form.next()).await.unwrap().unwrap().unwrap(), expected);
        }
        assert!(allowance.within(form.next()).await.is_err());
        allowance.set(1);
        assert_eq!(allowance.within(form.next()).await.unwrap().unwrap().unwrap(), "f");
        assert!(allowance.within(form.next()).await.unwrap().is_none(), "the end needs no allowance");
    }

    #[tokio::test]
    async fn a_step_that_needs_no_more_than_it_has_is_done() {
        let allowance = Allowance::new(3);
        let mut form = FormBody::new(body(&[b"abcdef"]), allowance.clone());
        let mut taken = Vec::new();
        let reads_what_is_ready = poll_fn(|context| {
            while let Poll::Ready(Some(Ok(data))) = form.poll_next_unpin(context) {
                taken.extend_from_slice(&data);
            }
            Poll::Ready(())
        });
        assert!(allowance.within(reads_what_is_ready).await.is_ok());
        assert_eq!(taken, b"abc");
    }
}
