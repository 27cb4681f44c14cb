//! A port, and what its connections share.

use std::sync::Arc;
use std::time::Duration;

use chassis_rpc::tls::Tls;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::sync::watch;
use tokio::time::Instant;

use super::permits::Permits;
use super::settings::{ConnectionSettings, Timeouts};
use crate::stage::{Stage, StopSettings};

/// A port and the bounds of its connections.
pub struct Port {
    /// In metrics and logs.
    pub name: &'static str,
    /// Most connections in all.
    pub max: usize,
    /// Most connections from one network; `None` where all may come from one.
    pub max_from_one: Option<usize>,
    pub timeouts: Timeouts,
    pub http: Builder<TokioExecutor>,
    pub tls: Option<Tls>,
    /// A connection is asked to end when it is so old.
    pub max_age: Option<Duration>,
    /// How long a stop goes on serving everything, and then what is in progress.
    pub drain: Duration,
    pub grace: Duration,
}

impl Port {
    /// A port as the settings say, for so many connections. `one_in` is its part of the files that the process may open:
    /// one in so many.
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
    // Hyper would count the idle time between two requests as part of the head.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(Some(Duration::from_secs(30)));
    builder
}

/// So many connections as were asked for, but never more than their part of the files that may be open.
fn within_files(port: &'static str, wanted: u32, one_in: u64) -> usize {
    let files = rlimit::Resource::NOFILE.get_soft().unwrap_or(1024);
    let used = (files / one_in.max(1)).max(1);
    if used < u64::from(wanted) {
        tracing::warn!(port, files, wanted, used, "too few files may be open for so many connections");
    }
    usize::try_from(used.min(wanted.into())).unwrap_or(usize::MAX)
}

/// What the connections of a port share.
pub(super) struct Shared<S> {
    pub service: S,
    pub port: Port,
    pub permits: Arc<Permits>,
    pub stop: watch::Receiver<Stage>,
    /// Set when the listener goes: until when one more request may come.
    pub last: watch::Receiver<Option<Instant>>,
}
