//! Channels to other services: one for each replica, used in turn. Names are looked up again every few seconds and
//! replicas asked for their health, so that they come and go without a restart and without a failed call.

mod address;
mod replicas;
mod status;
mod target;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use tonic::client::Grpc;
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;
use tonic::{ConnectError, Request, Response, Status, Streaming};

use crate::bytes_codec::AsBytes;
use crate::tls::Tls;
use replicas::Replicas;
use target::Target;

pub use address::PeerAddress;
pub use replicas::Choice;
pub use status::{is_transport, was_not_sent};
pub use target::MAX_HEADERS;

/// Stands between the addresses of one service.
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
    /// For as long as no replica is known.
    fallback: Channel,
}

impl Peer {
    /// `url` may be several, with `|` between them: one for each replica. A name in it stands for all of its
    /// addresses. Connections are made when first needed. Must be called inside the runtime.
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

    /// The same for a caller who can say that the call failed, and then try another one.
    pub fn choose(&self) -> Choice {
        self.replicas.choose().unwrap_or_else(|| Choice::only(self.fallback.clone()))
    }

    /// Every replica as it is found now, by its address, in the order of the addresses.
    pub async fn each(&self) -> Result<Vec<(SocketAddr, Channel)>, String> {
        let found = replicas::look_up(&self.targets).await.ok_or("the name is not known")?;
        found.into_iter().map(|(index, address)| Ok((address, self.targets[index].at(address)?))).collect()
    }

    /// Why a call to a peer failed, for an operator.
    pub fn reason(status: &tonic::Status) -> String {
        replicas::reason(status)
    }

    /// Whether the service says that it serves; if not, why.
    pub async fn is_serving(&self, patience: Duration) -> Result<(), String> {
        replicas::is_serving(self.channel(), patience).await
    }

    /// Calls an rpc by its path with wire bytes, for those who translate messages and do not know their types.
    pub async fn call(
        &self,
        path: PathAndQuery,
        message: Bytes,
        metadata: MetadataMap,
        timeout: Duration,
        most: usize,
    ) -> Result<Response<Bytes>, Status> {
        let replica = self.choose();
        let answer = async {
            let (mut grpc, request) = prepare(&replica, message, metadata, timeout, most).await?;
            grpc.unary(request, path, AsBytes).await
        };
        replica.judge(answer.await)
    }

    /// The same for an rpc that answers with a stream. `timeout` is for its beginning, not for all of it; `most` is the
    /// size of one message.
    pub async fn stream(
        &self,
        path: PathAndQuery,
        message: Bytes,
        metadata: MetadataMap,
        timeout: Duration,
        most: usize,
    ) -> Result<Response<Streaming<Bytes>>, Status> {
        let replica = self.choose();
        let answer = async {
            let (mut grpc, request) = prepare(&replica, message, metadata, timeout, most).await?;
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
    most: usize,
) -> Result<(Grpc<Channel>, Request<Bytes>), Status> {
    let mut grpc = Grpc::new(replica.channel.clone()).max_decoding_message_size(most);
    let mut request = Request::from_parts(metadata, tonic::Extensions::default(), message);
    request.set_timeout(timeout);
    grpc.ready().await.map_err(|error| {
        let mut status = Status::unavailable("the service cannot be reached");
        status.set_source(Arc::new(ConnectError(Box::new(error))));
        status
    })?;
    Ok((grpc, request))
}
