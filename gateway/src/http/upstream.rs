//! Calls to the services: bytes in, bytes out, with deadline, and a bounded number of repeats where they are safe.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use chassis::peer::Peer;
use http::uri::PathAndQuery;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status};
use tower::retry::budget::{Budget, TpsBudget};

use super::problem::is_transport;

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
    let replica = peer.choose();
    let answer = ask(replica.channel.clone(), outgoing).await;
    // The next attempt, of this and of every other request, goes elsewhere.
    if answer.as_ref().is_err_and(is_transport) {
        replica.failed();
    }
    answer
}

async fn ask(channel: Channel, outgoing: &Outgoing) -> Result<Response<Bytes>, Status> {
    let mut grpc = Grpc::new(channel).max_decoding_message_size(MAX_ANSWER);
    grpc.ready().await.map_err(|error| {
        let mut status = Status::unavailable("the service cannot be reached");
        status.set_source(std::sync::Arc::new(error));
        status
    })?;
    let mut request = Request::from_parts(
        outgoing.metadata.clone(),
        tonic::Extensions::default(),
        outgoing.message.clone(),
    );
    request.set_timeout(outgoing.timeout);
    grpc.unary(request, outgoing.path.clone(), Raw).await
}

/// Messages as they are: the gateway translates bytes, not types.
#[derive(Clone, Copy, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, target: &mut EncodeBuf<'_>) -> Result<(), Status> {
        target.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(source.copy_to_bytes(source.remaining())))
    }
}
