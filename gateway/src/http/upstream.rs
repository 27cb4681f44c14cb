//! Calls to the services: bytes in, bytes out, with deadline, and a bounded number of repeats where they are safe.

use std::time::Duration;

use bytes::Bytes;
use chassis::peer::{Peer, is_transport};
use http::uri::PathAndQuery;
use tonic::metadata::MetadataMap;
use tonic::{Code, Response, Status};
use tower::retry::budget::{Budget, TpsBudget};

/// Largest answer of a service: a file of 16 MiB fits, with what comes with it; so do 100 large documents.
const MAX_ANSWER: usize = (16 << 20) + (64 << 10);
/// Waits before the second and the third attempt; half to all of it, by chance.
const PAUSES: [Duration; 2] = [Duration::from_millis(40), Duration::from_millis(200)];

/// Bounds repeats to a fifth of the requests, so that a struggling service is not buried in them.
pub fn retry_budget() -> TpsBudget {
    TpsBudget::new(Duration::from_secs(10), 10, 0.2)
}

/// One call as it goes out.
pub struct Outgoing {
    pub path: PathAndQuery,
    pub message: Bytes,
    pub metadata: MetadataMap,
    pub timeout: Duration,
    /// Whether it may be repeated when it failed on its way: reads, and writes that carry an idempotency key.
    pub repeatable: bool,
}

pub async fn call(peer: &Peer, budget: &TpsBudget, outgoing: &Outgoing) -> Result<Response<Bytes>, Status> {
    budget.deposit();
    let deadline = tokio::time::Instant::now() + outgoing.timeout;
    let mut pauses = PAUSES.iter();
    loop {
        let Ok(answer) = tokio::time::timeout_at(deadline, attempt(peer, outgoing)).await else {
            return Err(Status::deadline_exceeded("the answer took too long"));
        };
        let failed = match answer {
            Err(status) if is_transport(&status) || status.code() == Code::Unavailable => status,
            other => return other,
        };
        match pauses.next() {
            Some(pause) if outgoing.repeatable && budget.withdraw() => {
                tracing::debug!(peer = peer.name(), error = %failed, "calling again");
                metrics::counter!("upstream_repeats", "peer" => peer.name().to_owned()).increment(1);
                tokio::time::sleep(pause.mul_f64(rand::random_range(0.5..1.0))).await;
            }
            _ => return Err(failed),
        }
    }
}

async fn attempt(peer: &Peer, outgoing: &Outgoing) -> Result<Response<Bytes>, Status> {
    let Outgoing { path, message, metadata, timeout, .. } = outgoing;
    peer.call(path.clone(), message.clone(), metadata.clone(), *timeout, MAX_ANSWER).await
}
