//! Asking the DNS. Nothing is remembered: whoever has just set a record wants to see it.

use std::net::SocketAddr;
use std::time::Duration;

use chassis::error::unavailable;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{RData, RecordType};

use super::rules::{MX, Wanted};
use crate::Error;

const TIMEOUT: Duration = Duration::from_secs(2);
const ATTEMPTS: usize = 2;
/// How many values of a name are looked at.
const MOST: usize = 100;

#[derive(Clone, Debug)]
pub struct Dns {
    /// The machine's own servers when not set.
    pub server: Option<SocketAddr>,
}

impl Dns {
    /// The values that the DNS has where a record is wanted.
    pub async fn values(&self, wanted: &Wanted) -> Result<Vec<String>, Error> {
        let resolver = self.resolver().map_err(|error| away(&error))?;
        let kind = if wanted.kind == MX { RecordType::MX } else { RecordType::TXT };
        // The dot at the end keeps the machine's search list out of it.
        let found = match resolver.lookup(format!("{}.", wanted.name), kind).await {
            Ok(found) => found,
            Err(error) if error.is_no_records_found() || error.is_nx_domain() => return Ok(Vec::new()),
            Err(error) => return Err(away(&error)),
        };
        Ok(found.answers().iter().filter_map(|record| text(&record.data)).take(MOST).collect())
    }

    fn resolver(&self) -> Result<TokioResolver, NetError> {
        let mut builder = match self.server {
            Some(address) => {
                let mut connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
                for connection in &mut connections {
                    connection.port = address.port();
                }
                let server = NameServerConfig::new(address.ip(), true, connections.into());
                let config = ResolverConfig::from_name_servers(vec![server]);
                TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
            }
            None => TokioResolver::builder_tokio()?,
        };
        let options = builder.options_mut();
        options.timeout = TIMEOUT;
        options.attempts = ATTEMPTS;
        options.cache_size = 0;
        options.use_hosts_file = ResolveHosts::Never;
        builder.build()
    }
}

/// A value as people write it. A text of several parts is one text.
fn text(data: &RData) -> Option<String> {
    match data {
        RData::TXT(text) => Some(String::from_utf8_lossy(&text.txt_data.concat()).into_owned()),
        RData::MX(mx) => Some(format!("{} {}", mx.preference, mx.exchange)),
        _ => None,
    }
}

fn away(error: &NetError) -> Error {
    tracing::warn!(%error, "the DNS did not answer");
    let answer = unavailable("The DNS does not answer right now. Repeat the request in a moment.");
    chassis::Error::Peer(Box::new(answer)).into()
}
