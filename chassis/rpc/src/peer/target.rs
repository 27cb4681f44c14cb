//! One address of a service, and the channels to it.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tonic::transport::{Channel, Endpoint, Uri};

use crate::tls::Tls;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Faults of a large body travel among the headers, in both directions.
pub const MAX_HEADERS: u32 = 1 << 20;
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// What a replica may send of one answer before we have read it: an answer that nobody reads costs no more than this.
const STREAM_WINDOW: u32 = 64 << 10;
/// The same of all answers on one connection together: large enough that answers which are not read never keep others
/// from coming.
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

    /// One channel to whatever is behind the name.
    pub(super) fn by_name(&self) -> Result<Channel, String> {
        self.channel(self.uri.authority().ok_or("has no host")?.as_str())
    }

    /// Where it is, if that is no name to be looked up.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.host.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, self.port))
    }

    pub(super) fn at(&self, address: SocketAddr) -> Result<Channel, String> {
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
