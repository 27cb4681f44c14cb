//! Channels to other services: one for each replica, used in turn. Names are resolved again every few seconds and
//! replicas are checked for health, so that replicas come and go without a restart and without a failed call.

mod address;
mod parts;
mod replicas;
mod status;
mod target;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::uri::PathAndQuery;
use proto::unary::AsBytes;
use tokio::sync::mpsc;
use tonic::client::Grpc;
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;
use tonic::{ConnectError, Request, Response, Status, Streaming};

use crate::tls::Tls;
use replicas::Replicas;
use target::Target;

pub use address::PeerAddress;
pub use parts::Part;
pub use replicas::Choice;
pub use status::{is_transport, was_not_sent};
pub use target::MAX_HEADERS;

/// Separates the addresses of one service.
const ALTERNATIVE: char = '|';

/// The services this process can call, by name.
#[derive(Clone, Default)]
pub struct Peers(Arc<HashMap<String, Peer>>);

impl Peers {
    pub fn new(addresses: &[PeerAddress], tls: &Tls) -> Result<Self, String> {
        let peer =
            |address: &PeerAddress| Ok((address.name.clone(), Peer::new(&address.name, &address.url, tls)?));
        Ok(Self(Arc::new(addresses.iter().map(peer).collect::<Result<_, String>>()?)))
    }

    pub fn get(&self, name: &str) -> Option<&Peer> {
        self.0.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.0.values()
    }
}

/// One service and its replicas.
#[derive(Clone)]
pub struct Peer {
    name: Arc<str>,
    targets: Arc<[Target]>,
    replicas: Replicas,
    /// Used until the first lookup has found a replica.
    fallback: Channel,
}

impl Peer {
    /// `url` may be several, separated by `|`, one for each replica. A host name stands for all of its addresses.
    /// Connections are made on first use. Must be called inside the runtime.
    pub fn new(name: &str, url: &str, tls: &Tls) -> Result<Self, String> {
        let unusable = |error: String| format!("the address of {name} ({url}): {error}");
        let targets = url.split(ALTERNATIVE).map(|url| Target::new(url.trim(), tls));
        let targets: Arc<[Target]> = targets.collect::<Result<_, String>>().map_err(unusable)?;
        let replicas = Replicas::of(&targets).map_err(unusable)?;
        let first = targets.first().ok_or_else(|| unusable("is empty".to_owned()))?;
        let fallback = first.by_name().map_err(unusable)?;
        Ok(Self { name: name.into(), targets, replicas, fallback })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The channel of the next replica in turn.
    pub fn channel(&self) -> Channel {
        self.choose().channel
    }

    /// The next replica in turn, for a caller that reports a failed call and then tries another replica.
    pub fn choose(&self) -> Choice {
        self.replicas.choose().unwrap_or_else(|| Choice::only(self.fallback.clone()))
    }

    /// Resolves every replica now, in the order of their addresses.
    pub async fn each(&self) -> Result<Vec<(SocketAddr, Channel)>, String> {
        let found = replicas::look_up(&self.targets).await.ok_or("the name cannot be resolved")?;
        found.into_iter().map(|(index, address)| Ok((address, self.targets[index].at(address)?))).collect()
    }

    /// Why a call to a peer failed, for an operator.
    pub fn reason(status: &tonic::Status) -> String {
        replicas::reason(status)
    }

    /// Whether the service reports that it is serving; if not, the reason.
    pub async fn is_serving(&self, timeout: Duration) -> Result<(), String> {
        replicas::is_serving(self.channel(), timeout).await
    }

    /// Calls an rpc by its path with an encoded message, for a caller that translates messages without their types.
    pub async fn call(
        &self,
        path: PathAndQuery,
        message: Bytes,
        metadata: MetadataMap,
        timeout: Duration,
        max_size: usize,
    ) -> Result<Response<Bytes>, Status> {
        let replica = self.choose();
        let answer = async {
            let (mut grpc, request) = prepare(&replica, message, metadata, timeout, max_size).await?;
            grpc.unary(request, path, AsBytes).await
        };
        replica.judge(answer.await)
    }

    /// Like [`call`](Self::call) for an rpc that takes a stream: `first`, and then what comes through the channel. The service
    /// refuses a stream whose sender was dropped before it said that this was all.
    pub async fn upload(
        &self,
        path: PathAndQuery,
        first: Bytes,
        rest: mpsc::Receiver<Part>,
        metadata: MetadataMap,
        timeout: Duration,
        max_size: usize,
    ) -> Result<Response<Bytes>, Status> {
        let replica = self.choose();
        let answer = async {
            let (mut grpc, request) = prepare(&replica, first, metadata, timeout, max_size).await?;
            let request = request.map(|first| stream::iter([first]).chain(parts::messages(rest)));
            grpc.client_streaming(request, path, AsBytes).await
        };
        replica.judge(answer.await)
    }

    /// Like [`call`](Self::call) for an rpc that responds with a stream. `timeout` limits the time to its headers, not
    /// the whole stream; `max_size` limits one message.
    pub async fn stream(
        &self,
        path: PathAndQuery,
        message: Bytes,
        metadata: MetadataMap,
        timeout: Duration,
        max_size: usize,
    ) -> Result<Response<Streaming<Bytes>>, Status> {
        let replica = self.choose();
        let answer = async {
            let (mut grpc, request) = prepare(&replica, message, metadata, timeout, max_size).await?;
            grpc.server_streaming(request, path, AsBytes).await
        };
        replica.judge(answer.await)
    }
}

async fn prepare(
    replica: &Choice,
    message: Bytes,
    metadata: MetadataMap,
    timeout: Duration,
    max_size: usize,
) -> Result<(Grpc<Channel>, Request<Bytes>), Status> {
    let mut grpc = Grpc::new(replica.channel.clone()).max_decoding_message_size(max_size);
    let mut request = Request::from_parts(metadata, tonic::Extensions::default(), message);
    request.set_timeout(rounded(timeout));
    grpc.ready().await.map_err(|error| {
        let mut status = Status::unavailable("the service cannot be reached");
        status.set_source(Arc::new(ConnectError(Box::new(error))));
        status
    })?;
    Ok((grpc, request))
}

/// A long timeout in whole tenths of a second, rounded down: most calls then send the same, which HTTP/2 does in one byte.
fn rounded(timeout: Duration) -> Duration {
    const STEP: u128 = 100;
    match timeout.as_millis() / STEP {
        steps @ 10.. => Duration::from_millis(u64::try_from(steps * STEP).unwrap_or(u64::MAX)),
        _ => timeout,
    }
}
