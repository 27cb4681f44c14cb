//! Calls to the services: bytes in, bytes out, with deadline, and a bounded number of repeats where they are safe.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use chassis::error::{MAY_HAVE_HAPPENED, may_have_happened};
use chassis::peer::{Peer, Peers, is_transport, was_not_sent};
use http::uri::PathAndQuery;
use prost::Message;
use proto::api::HttpBody;
use tokio::time::Instant;
use tokio::time::error::Elapsed;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Response, Status};
use tower::retry::budget::{Budget, TpsBudget};

use super::download::Download;

/// Largest answer of a service that comes in one message: a page of a list has 4 MiB at most, a thread of messages 6.
const MAX_ANSWER: usize = 8 << 20;
/// Largest message of a stream. Services send small ones; one that does not stream yet sends a file of 16 MiB as a whole.
const MAX_MESSAGE: usize = (16 << 20) + (64 << 10);
/// Waits before the second and the third attempt; half to all of it, by chance.
const PAUSES: [Duration; 2] = [Duration::from_millis(40), Duration::from_millis(200)];

/// What is kept for each service.
pub struct Upstreams(HashMap<String, Upstream>);

pub struct Upstream {
    pub peer: Peer,
    /// Bounds repeats to a fifth of the requests, so that a struggling service is not buried in them. Each service has
    /// its own: one that is down uses up nothing of the others'.
    retries: TpsBudget,
}

impl Upstreams {
    pub fn new(peers: &Peers) -> Self {
        let retries = || TpsBudget::new(Duration::from_secs(10), 10, 0.2);
        let upstream =
            |peer: &Peer| (peer.name().to_owned(), Upstream { peer: peer.clone(), retries: retries() });
        Self(peers.iter().map(upstream).collect())
    }

    pub fn get(&self, name: &str) -> Option<&Upstream> {
        self.0.get(name)
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// One call as it goes out.
pub struct Outgoing {
    pub path: PathAndQuery,
    pub message: Bytes,
    pub metadata: MetadataMap,
    pub timeout: Duration,
    /// Whether it may be repeated when it failed on its way: reads, and writes that carry an idempotency key.
    pub repeatable: bool,
    /// Whether it is to change something.
    pub changes: bool,
}

impl Upstream {
    pub async fn call(&self, outgoing: &Outgoing) -> Result<Response<Bytes>, Status> {
        let mut attempts = Attempts::new(self, outgoing);
        loop {
            let Outgoing { path, message, metadata, .. } = outgoing;
            let left = attempts.deadline.saturating_duration_since(Instant::now());
            let answer = self.peer.call(path.clone(), message.clone(), metadata.clone(), left, MAX_ANSWER);
            let answer = tokio::time::timeout_at(attempts.deadline, answer).await;
            if let Some(answer) = attempts.settle(answer).await {
                return answer;
            }
        }
    }

    /// The same for an answer that comes as a stream: until its first message is there.
    pub async fn begin(&self, outgoing: &Outgoing) -> Result<Response<Download>, Status> {
        let mut attempts = Attempts::new(self, outgoing);
        loop {
            let answer = tokio::time::timeout_at(attempts.deadline, self.try_begin(outgoing)).await;
            if let Some(answer) = attempts.settle(answer).await {
                return answer;
            }
        }
    }

    async fn try_begin(&self, outgoing: &Outgoing) -> Result<Response<Download>, Status> {
        let Outgoing { path, message, metadata, timeout, .. } = outgoing;
        let stream = self.peer.stream(path.clone(), message.clone(), metadata.clone(), *timeout, MAX_MESSAGE);
        let (metadata, mut rest, extensions) = stream.await?.into_parts();
        let first = rest.message().await?.ok_or_else(|| Status::internal("the answer has no message"))?;
        let head = HttpBody::decode(first).map_err(|error| Status::internal(error.to_string()))?;
        Ok(Response::from_parts(metadata, Download { head, rest }, extensions))
    }
}

/// The attempts of one call.
struct Attempts<'a> {
    upstream: &'a Upstream,
    repeatable: bool,
    changes: bool,
    /// Whether one of them may have had an effect, whatever became of the next.
    in_doubt: bool,
    deadline: Instant,
    pauses: std::slice::Iter<'static, Duration>,
}

impl<'a> Attempts<'a> {
    fn new(upstream: &'a Upstream, outgoing: &Outgoing) -> Self {
        upstream.retries.deposit();
        let deadline = Instant::now() + outgoing.timeout;
        let Outgoing { repeatable, changes, .. } = *outgoing;
        Self { upstream, repeatable, changes, in_doubt: false, deadline, pauses: PAUSES.iter() }
    }

    /// What came of the call; `None`, after a pause, where it is to be tried again.
    async fn settle<T>(&mut self, answer: Result<Result<T, Status>, Elapsed>) -> Option<Result<T, Status>> {
        let overdue = || Err(Status::deadline_exceeded("the answer took too long"));
        let answer = match answer {
            // The channel has a clock of its own, which may be a little faster.
            Ok(Err(status)) if is_transport(&status) && Instant::now() >= self.deadline => overdue(),
            Ok(answer) => answer,
            Err(_) => overdue(),
        };
        self.in_doubt |= self.changes && answer.as_ref().is_err_and(is_in_doubt);
        let failed = match answer {
            Err(status) if is_transport(&status) || status.code() == Code::Unavailable => status,
            other => return Some(other.map_err(|status| self.marked(status))),
        };
        match self.pauses.next() {
            Some(pause) if self.repeatable && self.upstream.retries.withdraw() => {
                let peer = self.upstream.peer.name();
                tracing::debug!(peer, error = %failed, "calling again");
                metrics::counter!("upstream_repeats", "peer" => peer.to_owned()).increment(1);
                tokio::time::sleep(pause.mul_f64(rand::random_range(0.5..1.0))).await;
                None
            }
            _ => Some(Err(self.marked(failed))),
        }
    }

    fn marked(&self, mut status: Status) -> Status {
        if self.in_doubt {
            status.metadata_mut().insert(MAY_HAVE_HAPPENED, MetadataValue::from_static("true"));
        }
        status
    }
}

/// Whether the call may have had an effect all the same: the service says so, or it was sent and is not answered by
/// the service itself, which always says what is wrong.
fn is_in_doubt(status: &Status) -> bool {
    may_have_happened(status) || (status.details().is_empty() && !was_not_sent(status))
}
