//! Channels to other services: one for each replica, used in turn. Names are looked up again every few seconds and
//! replicas asked for their health, so that they come and go without a restart and without a failed call.

mod replicas;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity, Uri};

use crate::config::{PeerAddress, TlsSettings};
use replicas::Replicas;

pub use replicas::Choice;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Stands between the addresses of one service.
const ALTERNATIVE: char = '|';
/// Faults of a large body travel among the headers, in both directions.
pub(crate) const MAX_HEADERS: u32 = 1 << 20;
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// The services this process can call, by name.
#[derive(Clone, Default)]
pub struct Peers(Arc<HashMap<String, Peer>>);

impl Peers {
    pub fn new(addresses: &[PeerAddress], tls: &TlsSettings) -> Result<Self, String> {
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
    pub fn new(name: &str, url: &str, tls: &TlsSettings) -> Result<Self, String> {
        let unusable = |error| format!("the address of {name} ({url}): {error}");
        let targets = url.split(ALTERNATIVE).map(|url| Target::new(url.trim(), tls));
        let targets: Arc<[Target]> = targets.collect::<Result<_, String>>().map_err(unusable)?;
        let replicas = Replicas::of(&targets).map_err(unusable)?;
        let fallback =
            targets.first().ok_or_else(|| unusable("is empty".to_owned()))?.endpoint.connect_lazy();
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
}

struct Target {
    host: String,
    port: u16,
    endpoint: Endpoint,
    tls: Option<ClientTlsConfig>,
}

impl Target {
    fn new(url: &str, settings: &TlsSettings) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|error| format!("{error}"))?;
        let host = uri.host().ok_or("has no host")?.trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().ok_or("has no port")?;
        let tls = if uri.scheme_str() == Some("https") { Some(client_tls(settings, &host)?) } else { None };
        let endpoint = endpoint(Endpoint::from(uri), tls.as_ref())?;
        Ok(Self { host, port, endpoint, tls })
    }

    /// Where it is, if that is no name to be looked up.
    fn address(&self) -> Option<SocketAddr> {
        self.host.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, self.port))
    }

    fn at(&self, address: SocketAddr) -> Result<Channel, String> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let to = Endpoint::from_shared(format!("{scheme}://{address}")).map_err(|error| error.to_string())?;
        let to = to.origin(self.endpoint.uri().clone());
        Ok(endpoint(to, self.tls.as_ref())?.connect_lazy())
    }
}

fn endpoint(endpoint: Endpoint, tls: Option<&ClientTlsConfig>) -> Result<Endpoint, String> {
    let endpoint = endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_max_header_list_size(MAX_HEADERS)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_while_idle(true);
    match tls {
        Some(tls) => endpoint.tls_config(tls.clone()).map_err(|error| error.to_string()),
        None => Ok(endpoint),
    }
}

fn client_tls(settings: &TlsSettings, host: &str) -> Result<ClientTlsConfig, String> {
    let mut tls = ClientTlsConfig::new().domain_name(host);
    if let Some(ca) = read_pem(settings.tls_ca.as_deref())? {
        tls = tls.ca_certificate(Certificate::from_pem(ca));
    }
    if let (Some(cert), Some(key)) =
        (read_pem(settings.tls_cert.as_deref())?, read_pem(settings.tls_key.as_deref())?)
    {
        tls = tls.identity(Identity::from_pem(cert, key));
    }
    Ok(tls)
}

pub(crate) fn read_pem(path: Option<&std::path::Path>) -> Result<Option<Vec<u8>>, String> {
    let read = |path: &std::path::Path| {
        std::fs::read(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
    };
    path.map(read).transpose()
}
