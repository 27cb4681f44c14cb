//! Downloads: answers that come as a stream and are passed on as one. Backpressure reaches the service: it is not asked
//! for more than the client reads.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use chassis_transcode::RenderError;
use futures::StreamExt;
use prost::Message;
use proto::api::HttpBody;
use tokio::sync::{Semaphore, mpsc};
use tonic::{Status, Streaming};

use super::byte_budget::{Reservation, attach};

/// How many bytes of one download are handed to the client's connection before they are written.
const WINDOW: usize = 128 << 10;
/// The most memory that one download takes: the window of its stream, a message that is being read, and [`WINDOW`].
pub(super) const COST: usize = 2 * WINDOW;
/// How long a service may take for the next message.
const UPSTREAM_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a client may stop reading. Its connection may be closed sooner.
const CLIENT_TIMEOUT: Duration = Duration::from_mins(1);

/// An answer in several messages that has begun: its first message, and where the rest comes from.
pub struct Download {
    pub first: Bytes,
    pub rest: Streaming<Bytes>,
}

/// Why a body ends before its length. The client sees that it is cut off.
#[derive(Debug, thiserror::Error)]
pub(super) enum DownloadError {
    #[error("the service failed: {0}")]
    Service(#[from] Status),
    #[error("the service sends nothing")]
    UpstreamTimeout,
    #[error("a message cannot be read: {0}")]
    Message(#[from] prost::DecodeError),
    #[error("a message cannot be shown: {0}")]
    Render(#[from] RenderError),
    #[error("{sent} bytes came instead of {expected}")]
    Length { sent: u64, expected: u64 },
    #[error("the client reads nothing")]
    ClientTimeout,
}

/// The content of a file as a body. The reservation is released when the last part is written.
pub(super) fn body(data: Bytes, length: u64, rest: Streaming<Bytes>, reserved: Reservation) -> Body {
    stream(data, length, rest, reserved, |message| Ok(HttpBody::decode(message)?.data))
}

/// The same for messages that become lines, of no known length.
pub(super) fn lines(
    Download { first, rest }: Download,
    mut lines: impl FnMut(Bytes) -> Result<Bytes, RenderError> + Send + 'static,
    reserved: Reservation,
) -> Result<Body, RenderError> {
    let first = lines(first)?;
    Ok(stream(first, 0, rest, reserved, move |message| Ok(lines(message)?)))
}

/// `part` makes the next part of the body of a message.
fn stream(
    first: Bytes,
    length: u64,
    rest: Streaming<Bytes>,
    reserved: Reservation,
    part: impl FnMut(Bytes) -> Result<Bytes, DownloadError> + Send + 'static,
) -> Body {
    // The channel needs no bound: the window bounds the bytes that are in it.
    let (sender, receiver) = mpsc::unbounded_channel();
    let pump =
        Pump { window: Arc::new(Semaphore::new(WINDOW)), reserved: Arc::new(reserved), sender, length };
    tokio::spawn(async move {
        let sender = pump.sender.clone();
        let ended = tokio::select! {
            ended = pump.run(first, rest, part) => ended,
            () = sender.closed() => return,
        };
        if let Err(error) = ended {
            tracing::warn!(%error, "download aborted");
            // An error means that the client has disconnected.
            let _ = sender.send(Err(error));
        }
    });
    let parts = futures::stream::unfold(receiver, async |mut receiver| {
        receiver.recv().await.map(|part| (part, receiver))
    });
    // Whoever compresses it looks again after the end.
    Body::from_stream(parts.fuse())
}

struct Pump {
    window: Arc<Semaphore>,
    reserved: Arc<Reservation>,
    sender: mpsc::UnboundedSender<Result<Bytes, DownloadError>>,
    length: u64,
}

impl Pump {
    async fn run(
        self,
        first: Bytes,
        mut rest: Streaming<Bytes>,
        mut part: impl FnMut(Bytes) -> Result<Bytes, DownloadError>,
    ) -> Result<(), DownloadError> {
        let mut sent = 0;
        let mut next = Some(first);
        while let Some(data) = next {
            sent += u64::try_from(data.len()).unwrap_or(u64::MAX);
            // A service that does not stream sends no length, and everything in its first message.
            if sent > self.length && self.length > 0 {
                return Err(DownloadError::Length { sent, expected: self.length });
            }
            self.pass(data).await?;
            let message = tokio::time::timeout(UPSTREAM_TIMEOUT, rest.message()).await;
            next = match message.map_err(|_| DownloadError::UpstreamTimeout)?? {
                Some(message) => Some(part(message)?),
                None => None,
            };
        }
        if sent < self.length { Err(DownloadError::Length { sent, expected: self.length }) } else { Ok(()) }
    }

    async fn pass(&self, data: Bytes) -> Result<(), DownloadError> {
        if data.is_empty() {
            return Ok(());
        }
        let part = u32::try_from(data.len().min(WINDOW)).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.window).acquire_many_owned(part);
        // The semaphore is never closed, so the only failure is the timeout.
        let Ok(Ok(permit)) = tokio::time::timeout(CLIENT_TIMEOUT, permit).await else {
            return Err(DownloadError::ClientTimeout);
        };
        let held = (permit, Arc::clone(&self.reserved));
        // An error means that the client has disconnected, which ends this task too.
        let _ = self.sender.send(Ok(attach(data, held)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use futures::FutureExt;

    use super::super::byte_budget::{ByteBudget, Owner};
    use super::*;

    type Parts = mpsc::UnboundedReceiver<Result<Bytes, DownloadError>>;

    fn pump(budget: &ByteBudget) -> (Pump, Parts) {
        let owner = Owner::new(IpAddr::V4(Ipv4Addr::LOCALHOST), None);
        let reserved = Arc::new(budget.reserve(owner, COST).unwrap());
        let (sender, receiver) = mpsc::unbounded_channel();
        (Pump { window: Arc::new(Semaphore::new(WINDOW)), reserved, sender, length: 0 }, receiver)
    }

    #[tokio::test]
    async fn what_is_not_written_keeps_the_next_part_from_being_asked_for() {
        let budget = ByteBudget::new("tests", COST);
        let (pump, mut parts) = pump(&budget);
        let part = Bytes::from(vec![0; WINDOW / 2]);
        for _ in 0..2 {
            pump.pass(part.clone()).await.unwrap();
        }
        assert!(pump.pass(part.clone()).now_or_never().is_none(), "the window is full");
        drop(parts.recv().await);
        pump.pass(part.clone()).await.unwrap();
        drop(pump);
        assert_eq!(budget.held(), COST, "until the last part is written");
        drop(parts);
        assert_eq!(budget.held(), 0);
    }
}
