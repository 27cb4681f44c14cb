//! The settings of the gateway, besides those that every process of the mesh has.

use std::net::SocketAddr;

use chassis_rpc::peer::PeerAddress;
use chassis_service::config::Settings as MeshSettings;
use clap::{Args, ValueEnum};

#[derive(Args, Clone, Debug)]
// The mesh settings have the same name, and clap makes a group of each.
#[group(id = "GatewaySettings")]
pub struct Settings {
    #[command(flatten)]
    pub mesh: MeshSettings,

    /// Address for gRPC calls of internal teams (accounts, keys, credentials and tokens)
    #[arg(long, env = "MESH_LISTEN", default_value = "127.0.0.1:7707", global = true)]
    pub mesh_listen: SocketAddr,

    /// The services: name=url, comma-separated; name=url|url for one with replicas
    #[arg(long, env = "PEERS", value_delimiter = ',', global = true)]
    pub peers: Vec<PeerAddress>,

    /// Requests a minute for each key; 0: no limit
    #[arg(long, env = "RATE_PER_MINUTE", default_value_t = 1200, global = true)]
    pub rate_per_minute: u32,

    /// Requests that a key may make in a burst before its rate counts
    #[arg(long, env = "RATE_BURST", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..), global = true)]
    pub rate_burst: u32,

    /// Requests without a key, to public links, a minute for each client address; 0: no limit
    #[arg(long, env = "PUBLIC_RATE_PER_MINUTE", default_value_t = 120, global = true)]
    pub public_rate_per_minute: u32,

    /// Requests without a key that an address may make in a burst before its rate counts
    #[arg(long, env = "PUBLIC_RATE_BURST", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..), global = true)]
    pub public_rate_burst: u32,

    /// Failed authentications a minute for each client address, which then has to wait; valid keys are accepted from
    /// there all the same; 0: no limit
    #[arg(long, env = "FAILED_AUTH_PER_MINUTE", default_value_t = 120, global = true)]
    pub failed_auth_per_minute: u32,

    /// Bytes of request bodies that may be in memory; a quarter of it for each client address
    #[arg(long, env = "MAX_BYTES_IN", default_value_t = 64 << 20, value_parser = bytes, global = true)]
    pub max_bytes_in: usize,

    /// Bytes of responses that may be in memory unwritten: a quarter for lists and the like, three quarters for
    /// downloads (256 KiB each); of both a quarter for each client address
    #[arg(long, env = "MAX_BYTES_OUT", default_value_t = 64 << 20, value_parser = bytes, global = true)]
    pub max_bytes_out: usize,

    /// Web pages that may call the API: origins, comma-separated, or * for any
    #[arg(long, env = "CORS_ORIGINS", value_delimiter = ',', default_value = "*", global = true)]
    pub cors_origins: Vec<String>,

    /// Most connections from one client address (of IPv6: from one /64). Beyond them the one of them that is idle for
    /// longest is closed, or the new one refused when none is idle; 0: no limit. Not used behind proxies, from which all
    /// connections come
    #[arg(long, env = "MAX_CONNECTIONS_PER_ADDRESS", default_value_t = 512, global = true)]
    pub max_connections_per_address: u32,

    /// How many proxies are in front of the gateway, each of which adds the address of its client to the header that
    /// FORWARDED_HEADER names: so many entries from the end, over all lines, is the client's address. 0: there is none,
    /// and whoever connects is the client
    #[arg(long, env = "TRUSTED_PROXIES", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=16), global = true)]
    pub trusted_proxies: u8,

    /// The header that the proxies write. The other one is never looked at: a client can send it through them
    #[arg(long, env = "FORWARDED_HEADER", default_value = "x-forwarded-for", global = true)]
    pub forwarded_header: ForwardedHeader,

    /// The same as TRUSTED_PROXIES=1
    #[arg(long, env = "TRUST_FORWARDED", default_value_t = false, action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true", require_equals = true, global = true)]
    pub trust_forwarded: bool,
}

/// The header in which proxies name their clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ForwardedHeader {
    /// X-Forwarded-For: addresses, comma-separated.
    XForwardedFor,
    /// Forwarded (RFC 7239): the `for` of each element.
    Forwarded,
}

impl Settings {
    /// How many proxies are in front of the gateway.
    pub fn proxies(&self) -> usize {
        usize::from(self.trusted_proxies).max(usize::from(self.trust_forwarded))
    }
}

/// At least what one download takes.
fn bytes(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(bytes) if bytes >= 1 << 20 => Ok(bytes),
        _ => Err("must be a number of bytes, at least 1048576".to_owned()),
    }
}
