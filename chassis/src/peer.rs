//! Channels to other services: one for each replica, used in turn. Names are looked up again every few seconds and
//! replicas asked for their health, so that they come and go without a restart and without a failed call.

mod replicas;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use tonic::client::Grpc;
use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{ConnectError, Request, Response, Status, Streaming};

use crate::bytes_codec::AsBytes;
use crate::config::PeerAddress;
use crate::tls::Tls;
use replicas::Replicas;

pub use replicas::Choice;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Stands between the addresses of one service.
const ALTERNATIVE: char = '|';
/// Faults of a large body travel among the headers, in both directions.
pub(crate) const MAX_HEADERS: u32 = 1 << 20;
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// What a replica may send of one answer before we have read it: an answer that nobody reads costs no more than this.
const STREAM_WINDOW: u32 = 64 << 10;
/// The same of all answers on one connection together: large enough that answers which are not read never keep others
/// from coming.
const CONNECTION_WINDOW: u32 = 1024 * STREAM_WINDOW;

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

struct Target {
    host: String,
    port: u16,
    /// The address as it was given.
    uri: Uri,
    tls: Option<Tls>,
}

impl Target {
    fn new(url: &str, tls: &Tls) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|error| format!("{error}"))?;
        let host = uri.host().ok_or("has no host")?.trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().ok_or("has no port")?;
        let tls = (uri.scheme_str() == Some("https")).then(|| tls.clone());
        Ok(Self { host, port, uri, tls })
    }

    /// One channel to whatever is behind the name.
    fn by_name(&self) -> Result<Channel, String> {
        self.channel(self.uri.authority().ok_or("has no host")?.as_str())
    }

    /// Where it is, if that is no name to be looked up.
    fn address(&self) -> Option<SocketAddr> {
        self.host.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, self.port))
    }

    fn at(&self, address: SocketAddr) -> Result<Channel, String> {
        self.channel(&address.to_string())
    }

    fn channel(&self, to: &str) -> Result<Channel, String> {
        // Without TLS as far as tonic knows: its own would keep the certificates it started with.
        let endpoint = Endpoint::from_shared(format!("http://{to}"))
            .map_err(|error| error.to_string())?
            .origin(self.uri.clone())
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .http2_max_header_list_size(MAX_HEADERS)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_while_idle(true);
        match &self.tls {
            Some(tls) => tls.channel(&endpoint, &self.host),
            None => Ok(endpoint.connect_lazy()),
        }
    }
}

/// Whether the call failed before it was sent, so that it has certainly had no effect.
pub fn was_not_sent(status: &Status) -> bool {
    let causes = std::iter::successors(std::error::Error::source(status), |cause| cause.source());
    causes.into_iter().any(<dyn std::error::Error>::is::<ConnectError>)
}

/// Whether the call failed on its way and not in the service.
pub fn is_transport(status: &Status) -> bool {
    status.details().is_empty() && std::error::Error::source(status).is_some()
}
