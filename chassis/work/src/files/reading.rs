//! A file on its way out: read piece by piece, and no faster than somebody takes the pieces, so that a file which nobody
//! reads on costs a piece and not the file.

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

/// What is read at once. Each piece is a request of its own, so that a slow reader runs into no timeout of the store.
const PIECE: u64 = 256 << 10;
/// Most bytes of content in one message.
const MAX_CONTENT: usize = 64 << 10;
/// Files that a process reads at the same time; the memory for it is this many pieces, 64 MiB.
pub(super) const MAX_READINGS: usize = 256;
/// A reader who takes nothing for so long is given up.
const STALL_TIMEOUT: Duration = Duration::from_mins(1);

/// An answer in parts; see `admin.api.v1.HttpBody`.
pub type HttpBodies = Pin<Box<dyn Stream<Item = Result<HttpBody, Status>> + Send>>;

/// A file that is being read.
pub struct Reading {
    length: u64,
    /// What was read and not taken yet.
    piece: Bytes,
    rest: Option<Rest>,
}

/// What is still in the store. A file never changes, so that its pieces belong together.
struct Rest {
    store: Arc<dyn ObjectStore>,
    path: Path,
    at: u64,
    _place: OwnedSemaphorePermit,
}

impl Reading {
    /// Reads the first piece, so that what is wrong is known before anything is answered.
    pub(super) async fn begin(
        store: Arc<dyn ObjectStore>,
        path: Path,
        length: u64,
        place: OwnedSemaphorePermit,
    ) -> Result<Self, Error> {
        let rest = Some(Rest { store, path, at: 0, _place: place });
        let mut reading = Self { length, piece: Bytes::new(), rest };
        reading.fill().await?;
        Ok(reading)
    }

    /// The content in memory as if it were read.
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

    /// The next content, at most so many bytes; `None` behind the end.
    async fn next(&mut self, most: usize) -> Result<Option<Bytes>, Error> {
        self.fill().await?;
        let taken = self.piece.split_to(most.min(self.piece.len()));
        Ok(Some(taken).filter(|taken| !taken.is_empty()))
    }

    /// The answer of an rpc: `head` says everything but the content and its length. A caller who does not say that
    /// they take a stream gets one message.
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
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(self.send(head, sender));
        let messages = futures::stream::unfold(receiver, async |mut receiver| {
            receiver.recv().await.map(|message| (message, receiver))
        });
        Ok(Response::new(Box::pin(messages)))
    }

    /// Ends when the reader is gone or takes nothing: with it go the file and its place.
    async fn send(mut self, head: HttpBody, sender: mpsc::Sender<Result<HttpBody, Status>>) {
        let mut message = Some(Ok(head));
        while let Some(next) = message {
            let failed = next.is_err();
            let sent = tokio::time::timeout(STALL_TIMEOUT, sender.send(next)).await;
            if failed || !matches!(sent, Ok(Ok(()))) {
                return;
            }
            message = match self.next(MAX_CONTENT).await {
                Ok(None) => None,
                Ok(Some(data)) => Some(Ok(HttpBody { data, ..HttpBody::default() })),
                Err(error) => Some(Err(error.into())),
            };
        }
    }
}
