//! Queries the DNS. Answers are not cached, so that a record that was just set is found. A file of its own because it
//! is the only code that uses the resolver.

use std::net::SocketAddr;
use std::time::Duration;

use chassis_base::error::status::unavailable;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{RData, RecordType};

use super::rules::{ExpectedRecord, MX};
use crate::error::Error;

const TIMEOUT: Duration = Duration::from_secs(2);
const MAX_ATTEMPTS: usize = 2;
/// The number of values of a name that are compared.
const MAX_VALUES: usize = 100;

#[derive(Clone, Debug)]
pub(crate) struct Dns {
    /// Without a server, the servers of the machine's configuration are used.
    pub server: Option<SocketAddr>,
}

impl Dns {
    /// The values that the DNS has at the name of an expected record.
    pub(crate) async fn values(&self, expected: &ExpectedRecord) -> Result<Vec<String>, Error> {
        let resolver = self.resolver().map_err(|error| unavailable_dns(&error))?;
        let kind = if expected.kind == MX { RecordType::MX } else { RecordType::TXT };
        // With a dot at the end the name is complete, and the search list of the machine is not applied.
        let found = match resolver.lookup(format!("{}.", expected.name), kind).await {
            Ok(found) => found,
            Err(error) if error.is_no_records_found() || error.is_nx_domain() => return Ok(Vec::new()),
            Err(error) => return Err(unavailable_dns(&error)),
        };
        Ok(found.answers().iter().filter_map(|record| text(&record.data)).take(MAX_VALUES).collect())
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
        options.attempts = MAX_ATTEMPTS;
        options.cache_size = 0;
        options.use_hosts_file = ResolveHosts::Never;
        builder.build()
    }
}

/// A value as people write it. The parts of a text are joined.
fn text(data: &RData) -> Option<String> {
    match data {
        RData::TXT(text) => Some(String::from_utf8_lossy(&text.txt_data.concat()).into_owned()),
        RData::MX(mx) => Some(format!("{} {}", mx.preference, mx.exchange)),
        _ => None,
    }
}

fn unavailable_dns(error: &NetError) -> Error {
    tracing::warn!(%error, "DNS query failed");
    let answer = unavailable("The DNS does not answer right now. Repeat the request in a moment.");
    chassis_base::Error::Peer(Box::new(answer)).into()
}
