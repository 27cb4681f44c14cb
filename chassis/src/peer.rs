//! Channels to other services: one for each address behind a name, used in turn. Names are looked up again every few
//! seconds, so that replicas come and go without a restart.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::uri::PathAndQuery;
use tonic::client::Grpc;
use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Request, Response, Status};

use crate::bytes_codec::AsBytes;
use crate::config::PeerAddress;
use crate::tls::Tls;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const LOOK_UP_EVERY: Duration = Duration::from_secs(5);
/// Faults of a large body travel among the headers, in both directions.
pub(crate) const MAX_HEADERS: u32 = 1 << 20;
const KEEP_ALIVE: Duration = Duration::from_secs(20);

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
    channels: Arc<ArcSwap<Vec<(SocketAddr, Channel)>>>,
    fallback: Channel,
    next: Arc<AtomicUsize>,
}

impl Peer {
    /// Connections are made when first needed. Must be called inside the runtime.
    pub fn new(name: &str, url: &str, tls: &Tls) -> Result<Self, String> {
        let wrong = |error: String| format!("the address of {name} ({url}): {error}");
        let target = Target::new(url, tls).map_err(wrong)?;
        let peer = Self {
            name: name.into(),
            channels: Arc::default(),
            fallback: target.by_name().map_err(wrong)?,
            next: Arc::default(),
        };
        if target.host.parse::<std::net::IpAddr>().is_err() {
            tokio::spawn(look_up(Arc::downgrade(&peer.channels), target));
        }
        Ok(peer)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next channel in turn.
    pub fn channel(&self) -> Channel {
        let channels = self.channels.load();
        if channels.is_empty() {
            return self.fallback.clone();
        }
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        channels[turn % channels.len()].1.clone()
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
        let mut grpc = Grpc::new(self.channel()).max_decoding_message_size(most);
        grpc.ready().await.map_err(|error| {
            let mut status = Status::unavailable("the service cannot be reached");
            status.set_source(Arc::new(error));
            status
        })?;
        let mut request = Request::from_parts(metadata, tonic::Extensions::default(), message);
        request.set_timeout(timeout);
        grpc.unary(request, path, AsBytes).await
    }
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
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_while_idle(true);
        match &self.tls {
            Some(tls) => tls.channel(&endpoint, &self.host),
            None => Ok(endpoint.connect_lazy()),
        }
    }
}

/// Keeps the channels in step with the addresses behind the name, until the peer is dropped.
async fn look_up(channels: std::sync::Weak<ArcSwap<Vec<(SocketAddr, Channel)>>>, target: Target) {
    let mut ticks = tokio::time::interval(LOOK_UP_EVERY);
    loop {
        ticks.tick().await;
        let found = tokio::net::lookup_host((target.host.as_str(), target.port)).await;
        let Some(channels) = channels.upgrade() else { return };
        match found {
            Ok(addresses) => renew(&channels, &target, addresses.collect()),
            // The last known addresses are better than none.
            Err(error) => tracing::warn!(host = target.host, %error, "name not found"),
        }
    }
}

fn renew(channels: &ArcSwap<Vec<(SocketAddr, Channel)>>, target: &Target, mut addresses: Vec<SocketAddr>) {
    addresses.sort_unstable();
    addresses.dedup();
    let known = channels.load();
    if known.iter().map(|(address, _)| *address).eq(addresses.iter().copied()) {
        return;
    }
    let channel = |address: SocketAddr| {
        let existing = known.iter().find(|(have, _)| *have == address).map(|(_, channel)| channel.clone());
        existing.map_or_else(|| target.at(address), Ok).map(|channel| (address, channel))
    };
    match addresses.into_iter().map(channel).collect() {
        Ok(renewed) => channels.store(Arc::new(renewed)),
        Err(error) => tracing::warn!(host = target.host, error, "addresses not usable"),
    }
}
