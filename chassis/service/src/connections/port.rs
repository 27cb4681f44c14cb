//! A port, and the state that its connections share.

use std::sync::Arc;
use std::time::Duration;

use chassis_rpc::tls::Tls;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::sync::watch;
use tokio::time::Instant;

use super::answers::Answers;
use super::permits::Permits;
use super::settings::{ConnectionSettings, Timeouts};
use crate::stage::{Stage, StopSettings};

/// A port and the limits of its connections.
pub struct Port {
    /// The name in metrics and logs.
    pub name: &'static str,
    /// The maximum number of connections.
    pub max: usize,
    /// The maximum from one network; `None` where all may come from one.
    pub max_from_one: Option<usize>,
    pub timeouts: Timeouts,
    pub http: Builder<TokioExecutor>,
    pub tls: Option<Tls>,
    /// The age at which a connection is closed gracefully.
    pub max_age: Option<Duration>,
    /// How long a stop serves everything, and then (`grace`) requests in progress.
    pub drain: Duration,
    pub grace: Duration,
}

impl Port {
    /// A port with these settings and at most `max` connections. It may use one in `one_in` of the files that the
    /// process may open.
    pub fn new(
        name: &'static str,
        connections: &ConnectionSettings,
        stop: &StopSettings,
        max: u32,
        one_in: u64,
    ) -> Self {
        Self {
            name,
            max: within_files(name, max, one_in),
            max_from_one: None,
            timeouts: connections.timeouts(),
            http: http_builder(),
            tls: None,
            max_age: None,
            drain: stop.drain(),
            grace: stop.grace(),
        }
    }
}

fn http_builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    // Hyper counts the idle time between two requests as part of the head, so `Activity` measures the head instead.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(Some(Duration::from_secs(30)));
    builder
}

/// The wanted number of connections, but never more than the port's share of the files that may be open.
fn within_files(port: &'static str, wanted: u32, one_in: u64) -> usize {
    let files = rlimit::Resource::NOFILE.get_soft().unwrap_or(1024);
    let used = (files / one_in.max(1)).max(1);
    if used < u64::from(wanted) {
        tracing::warn!(port, files, wanted, used, "too few files may be open for so many connections");
    }
    usize::try_from(used.min(wanted.into())).unwrap_or(usize::MAX)
}

/// The state that the connections of a port share.
pub(super) struct Shared {
    pub service: Arc<dyn Answers>,
    pub port: Port,
    pub permits: Arc<Permits>,
    pub stop: watch::Receiver<Stage>,
    /// Set when the listener closes: the time until which a connection may send one more request.
    pub last: watch::Receiver<Option<Instant>>,
}
