//! One address of a service, and the channels to it.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tonic::transport::{Channel, Endpoint, Uri};

use crate::tls::Tls;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Faults of a large body travel among the headers, in both directions.
pub const MAX_HEADERS: u32 = 1 << 20;
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// How much of one response a replica may send before it is read: a response that nobody reads costs no more memory.
const STREAM_WINDOW: u32 = 64 << 10;
/// The same for all responses on one connection: large enough that unread responses do not block the rest.
const CONNECTION_WINDOW: u32 = 1024 * STREAM_WINDOW;

pub(super) struct Target {
    pub host: String,
    pub port: u16,
    /// The address as it was given.
    uri: Uri,
    tls: Option<Tls>,
}

impl Target {
    pub(super) fn new(url: &str, tls: &Tls) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|error| format!("{error}"))?;
        let host = uri.host().ok_or("has no host")?.trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().ok_or("has no port")?;
        let tls = (uri.scheme_str() == Some("https")).then(|| tls.clone());
        Ok(Self { host, port, uri, tls })
    }

    /// One channel to the host name, which connects to whichever address it resolves to.
    pub(super) fn by_name(&self) -> Result<Channel, String> {
        self.channel(self.uri.authority().ok_or("has no host")?.as_str())
    }

    /// The address, unless the host is a name that has to be resolved.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.host.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, self.port))
    }

    pub(super) fn at(&self, address: SocketAddr) -> Result<Channel, String> {
        self.channel(&address.to_string())
    }

    fn channel(&self, to: &str) -> Result<Channel, String> {
        // The scheme is always http: tonic's own TLS would keep the certificates that the process started with.
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
