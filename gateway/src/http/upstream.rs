//! Calls to the services: bytes in, bytes out, with deadline, and a bounded number of repeats where they are safe.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use chassis_base::error::status::{MAY_HAVE_HAPPENED, may_have_happened};
use chassis_rpc::peer::{Part, Peer, Peers, is_transport, was_not_sent};
use http::uri::PathAndQuery;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio::time::error::Elapsed;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Response, Status};
use tower::retry::budget::{Budget, TpsBudget};

use super::download::Download;

/// Largest answer of a service that comes in one message: a page of a list has 4 MiB at most, a thread of messages 6.
const MAX_RESPONSE: usize = 8 << 20;
/// Largest message of a stream. Services send small messages, but an older release sends a file of 16 MiB in one.
const MAX_MESSAGE: usize = (16 << 20) + (64 << 10);
/// The backoff before the second and the third attempt, of which a random half to whole is slept.
const BACKOFFS: [Duration; 2] = [Duration::from_millis(40), Duration::from_millis(200)];

/// The services, by name.
pub struct Upstreams(HashMap<String, Upstream>);

pub struct Upstream {
    pub peer: Peer,
    /// Bounds repeats to a fifth of the requests, so that an overloaded service does not get even more. Each service has
    /// its own budget, so that a service that is down does not use up the repeats of other services.
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

/// One call to a service.
pub struct UpstreamCall {
    pub path: PathAndQuery,
    pub message: Bytes,
    pub metadata: MetadataMap,
    pub timeout: Duration,
    /// Whether it may be repeated after a transport error: reads, and writes that carry an idempotency key.
    pub repeatable: bool,
    /// Whether it is a write.
    pub changes: bool,
}

impl Upstream {
    pub async fn call(&self, outgoing: &UpstreamCall) -> Result<Response<Bytes>, Status> {
        let mut attempts = Attempts::new(self, outgoing);
        loop {
            let UpstreamCall { path, message, metadata, .. } = outgoing;
            let left = attempts.deadline.saturating_duration_since(Instant::now());
            let answer = self.peer.call(path.clone(), message.clone(), metadata.clone(), left, MAX_RESPONSE);
            let answer = tokio::time::timeout_at(attempts.deadline, answer).await;
            if let Some(answer) = attempts.settle(answer).await {
                return answer;
            }
        }
    }

    /// The same with more messages after the first. Never repeated, because what has been read of the client is gone.
    pub async fn upload(
        &self,
        outgoing: &UpstreamCall,
        rest: mpsc::Receiver<Part>,
    ) -> Result<Response<Bytes>, Status> {
        let mut attempts = Attempts::new(self, outgoing);
        attempts.repeatable = false;
        let UpstreamCall { path, message, metadata, timeout, .. } = outgoing;
        let answer =
            self.peer.upload(path.clone(), message.clone(), rest, metadata.clone(), *timeout, MAX_RESPONSE);
        let answer = tokio::time::timeout_at(attempts.deadline, answer).await;
        let overdue = || Err(Status::deadline_exceeded("the answer took too long"));
        attempts.settle(answer).await.unwrap_or_else(overdue)
    }

    /// The same for an answer that is a stream. Returns when its first message has arrived.
    pub async fn begin(&self, outgoing: &UpstreamCall) -> Result<Response<Download>, Status> {
        let mut attempts = Attempts::new(self, outgoing);
        loop {
            let answer = tokio::time::timeout_at(attempts.deadline, self.try_begin(outgoing)).await;
            if let Some(answer) = attempts.settle(answer).await {
                return answer;
            }
        }
    }

    async fn try_begin(&self, outgoing: &UpstreamCall) -> Result<Response<Download>, Status> {
        let UpstreamCall { path, message, metadata, timeout, .. } = outgoing;
        let stream = self.peer.stream(path.clone(), message.clone(), metadata.clone(), *timeout, MAX_MESSAGE);
        let (metadata, mut rest, extensions) = stream.await?.into_parts();
        let first = rest.message().await?.ok_or_else(|| Status::internal("the answer has no message"))?;
        Ok(Response::from_parts(metadata, Download { first, rest }, extensions))
    }
}

/// The attempts of one call.
struct Attempts<'a> {
    upstream: &'a Upstream,
    repeatable: bool,
    changes: bool,
    /// Whether an attempt may have had an effect, whatever the result of the next one.
    in_doubt: bool,
    deadline: Instant,
    backoffs: std::slice::Iter<'static, Duration>,
}

impl<'a> Attempts<'a> {
    fn new(upstream: &'a Upstream, outgoing: &UpstreamCall) -> Self {
        upstream.retries.deposit();
        let deadline = Instant::now() + outgoing.timeout;
        let UpstreamCall { repeatable, changes, .. } = *outgoing;
        Self { upstream, repeatable, changes, in_doubt: false, deadline, backoffs: BACKOFFS.iter() }
    }

    /// The result of the call; `None`, after a backoff, when it is to be tried again.
    async fn settle<T>(&mut self, answer: Result<Result<T, Status>, Elapsed>) -> Option<Result<T, Status>> {
        let overdue = || Err(Status::deadline_exceeded("the answer took too long"));
        let answer = match answer {
            // The channel has a timer of its own, which may fire a little earlier.
            Ok(Err(status)) if is_transport(&status) && Instant::now() >= self.deadline => overdue(),
            Ok(answer) => answer,
            Err(_) => overdue(),
        };
        self.in_doubt |= self.changes && answer.as_ref().is_err_and(is_in_doubt);
        let failed = match answer {
            Err(status) if is_transport(&status) || status.code() == Code::Unavailable => status,
            // A replica of the release before does not know the call yet; another one may.
            Err(status) if is_unknown_call(&status) => status,
            other => return Some(other.map_err(|status| self.marked(status))),
        };
        match self.backoffs.next() {
            Some(backoff) if self.repeatable && self.upstream.retries.withdraw() => {
                let peer = self.upstream.peer.name();
                tracing::debug!(peer, error = %failed, "repeating the call");
                metrics::counter!("upstream_repeats", "peer" => peer.to_owned()).increment(1);
                tokio::time::sleep(backoff.mul_f64(rand::random_range(0.5..1.0))).await;
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

/// Whether a failed call may have had an effect: the service says so, or the call was sent and the error does not come
/// from the service itself, whose errors always have details.
fn is_in_doubt(status: &Status) -> bool {
    let is_unexplained = status.details().is_empty() && !was_not_sent(status) && !is_unknown_call(status);
    may_have_happened(status) || is_unexplained
}

/// Whether the service has no such rpc.
fn is_unknown_call(status: &Status) -> bool {
    status.code() == Code::Unimplemented && status.details().is_empty()
}
