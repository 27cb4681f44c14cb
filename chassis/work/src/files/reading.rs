//! Streams a file in pieces, at the speed of the receiver, so that a stalled download holds one piece in memory and not
//! the whole file.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chassis_base::Error;
use futures::Stream;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use proto::api::HttpBody;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tonic::{Response, Status};

use super::error::unreachable;

/// The bytes read in one request. Each piece is a separate request, so that a slow receiver does not hit a timeout of
/// the store.
const PIECE: u64 = 256 << 10;
/// The maximum bytes of content in one message, as the proto files say.
const MAX_CONTENT: usize = 64 << 10;
/// The maximum files that a process reads at the same time. Each holds one piece in memory, 64 MiB in total.
pub(super) const MAX_READINGS: usize = 256;
/// A stream is ended after its receiver has taken nothing for this long.
const STALL_TIMEOUT: Duration = Duration::from_mins(1);

/// A streamed response.
pub type Messages<M> = Pin<Box<dyn Stream<Item = Result<M, Status>> + Send>>;

/// The same, of a page or a file; see `admin.api.v1.HttpBody`.
pub type HttpBodies = Messages<HttpBody>;

/// A file that is being read.
pub struct Reading {
    length: u64,
    /// The bytes that were read and not returned yet.
    piece: Bytes,
    rest: Option<Rest>,
}

/// The part that is not read yet. Files never change, so pieces of separate requests fit together.
struct Rest {
    store: Arc<dyn ObjectStore>,
    path: Path,
    at: u64,
    _permit: OwnedSemaphorePermit,
}

impl Reading {
    /// Reads the first piece, so that an error is returned before the response starts.
    pub(super) async fn begin(
        store: Arc<dyn ObjectStore>,
        path: Path,
        length: u64,
        permit: OwnedSemaphorePermit,
    ) -> Result<Self, Error> {
        let rest = Some(Rest { store, path, at: 0, _permit: permit });
        let mut reading = Self { length, piece: Bytes::new(), rest };
        reading.fill().await?;
        Ok(reading)
    }

    /// Content that is already in memory.
    pub fn of(content: Bytes) -> Self {
        Self { length: u64::try_from(content.len()).unwrap_or(u64::MAX), piece: content, rest: None }
    }

    async fn fill(&mut self) -> Result<(), Error> {
        let Some(rest) = self.rest.as_mut().filter(|_| self.piece.is_empty()) else { return Ok(()) };
        let range: Range<u64> = rest.at..self.length.min(rest.at + PIECE);
        if !range.is_empty() {
            let read = rest.store.get_range(&rest.path, range.clone()).await;
            self.piece = read.map_err(|error| unreachable(&error))?;
        }
        rest.at = range.end;
        if rest.at >= self.length {
            self.rest = None;
        }
        Ok(())
    }

    /// The next bytes, at most `most`; `None` at the end.
    async fn next(&mut self, most: usize) -> Result<Option<Bytes>, Error> {
        self.fill().await?;
        let taken = self.piece.split_to(most.min(self.piece.len()));
        Ok(Some(taken).filter(|taken| !taken.is_empty()))
    }

    /// The response of an rpc. `head` has all fields but the content and its length. A caller that does not accept a
    /// stream gets one message.
    pub async fn answer(
        mut self,
        mut head: HttpBody,
        streamed: bool,
    ) -> Result<Response<HttpBodies>, Status> {
        head.length = self.length;
        if !streamed {
            let mut content = Vec::with_capacity(usize::try_from(self.length).unwrap_or_default());
            while let Some(piece) = self.next(usize::MAX).await? {
                content.extend_from_slice(&piece);
            }
            head.data = content.into();
            return Ok(Response::new(Box::pin(futures::stream::iter([Ok(head)]))));
        }
        Ok(Response::new(self.stream(head, |data| HttpBody { data, ..HttpBody::default() })))
    }

    /// The messages of a response: `head`, and then one for each piece, made by `message`.
    pub fn stream<M: Send + 'static>(self, head: M, message: fn(Bytes) -> M) -> Messages<M> {
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(self.send(head, message, sender));
        Box::pin(futures::stream::unfold(receiver, async |mut receiver| {
            receiver.recv().await.map(|message| (message, receiver))
        }))
    }

    /// Sends the pieces. Ends when the receiver is gone or stalls, which releases the file and its permit.
    async fn send<M>(mut self, head: M, of_piece: fn(Bytes) -> M, sender: mpsc::Sender<Result<M, Status>>) {
        let mut message = Some(Ok(head));
        while let Some(next) = message {
            let failed = next.is_err();
            let sent = tokio::time::timeout(STALL_TIMEOUT, sender.send(next)).await;
            if failed || !matches!(sent, Ok(Ok(()))) {
                return;
            }
            message = match self.next(MAX_CONTENT).await {
                Ok(None) => None,
                Ok(Some(data)) => Some(Ok(of_piece(data))),
                Err(error) => Some(Err(error.into())),
            };
        }
    }
}
