//! The connections of a port, whatever is spoken on them: how many there may be, how long each may be silent, and how
//! they end when the process stops. Knows HTTP, but no route.
//!
//! A connection that brings no request, stays idle, or does not take its answer is closed. When there are too many, the
//! longest idle one makes room, one that never asked for anything before one that did; when none is idle, the new one is
//! refused at once.
//!
//! A stop loses no request. While it drains, everything is served, and answers over HTTP/1 tell their client to connect
//! anew. Then HTTP/2 clients are told to go, connections that wait to be accepted are, the listener is closed, and
//! whoever cannot be told (HTTP/1 between two requests, or before the first) has a moment for one more.

mod activity;
mod body;
mod io;
mod one;
mod places;
mod settings;
mod unread;

pub use places::network;
pub use settings::{ConnectionSettings, Timeouts};

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;
use tower::Service;

use self::places::{Full, Places};
use crate::config::Settings;
use crate::server::{Stage, asked_to_stop};
use crate::tls::Tls;

/// A pause when the system refuses connections, for example for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long a connection that cannot be told of a stop may bring one more request.
const LAST_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
/// More than wait to be accepted on any port.
const MAX_BACKLOG: usize = 8192;
/// For HTTP/1 clients; others see that the connection ends.
const REFUSAL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

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
    pub fn new(name: &'static str, settings: &Settings, max: u32, one_in: u64) -> Self {
        let connections = &settings.connections;
        Self {
            name,
            max: within_files(name, max, one_in),
            max_from_one: None,
            timeouts: connections.timeouts(),
            http: http_builder(),
            tls: None,
            max_age: None,
            drain: settings.drain(),
            grace: settings.grace(),
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

/// Raises the number of files that this process may open to the most that it may ask for. To be called once, at start.
pub fn raise_file_limit() {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(files) => tracing::debug!(files, "open files are limited"),
        Err(error) => tracing::warn!(%error, "the limit of open files could not be raised"),
    }
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
struct Shared<S> {
    service: S,
    port: Port,
    places: Arc<Places>,
    stop: watch::Receiver<Stage>,
    /// Set when the listener goes: until when one more request may come.
    last: watch::Receiver<Option<Instant>>,
}

/// Serves until asked to stop: through the port's `drain` with new connections, then what is in progress for `grace`.
pub async fn serve<S>(listener: TcpListener, service: S, port: Port, stop: watch::Receiver<Stage>)
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    let (drain, grace) = (port.drain, port.grace);
    let (ending, last) = watch::channel(None);
    let places = Places::new(port.max, port.max_from_one);
    let shared = Arc::new(Shared { service, port, places, stop: stop.clone(), last });
    let mut drained = std::pin::pin!(async {
        asked_to_stop(stop).await;
        tokio::time::sleep(drain).await;
    });
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut drained => break,
        };
        match accepted {
            Ok((stream, from)) => take(&shared, stream, from),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    ending.send_replace(Some(Instant::now() + LAST_REQUEST_TIMEOUT.min(grace)));
    take_waiting(&shared, listener);
    // Every connection holds it, so that the last receiver goes with the last connection.
    drop(shared);
    if tokio::time::timeout(grace, ending.closed()).await.is_err() {
        tracing::warn!("stopped with requests still in progress");
    }
}

/// Serves what the system has already accepted, and closes the listener when nothing waits there.
fn take_waiting<S>(shared: &Arc<Shared<S>>, listener: TcpListener)
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    // Asked without the runtime, which would answer with what it knew a moment ago.
    let Ok(listener) = listener.into_std() else { return };
    for _ in 0..MAX_BACKLOG {
        match listener.accept() {
            Ok((stream, from)) => {
                let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
                if let Ok(stream) = stream {
                    take(shared, stream, from);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
            Err(error) => tracing::debug!(%error, "a connection could not be accepted"),
        }
    }
}

/// Serves a connection if there is a place for it.
fn take<S>(shared: &Arc<Shared<S>>, stream: TcpStream, from: SocketAddr)
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    let name = shared.port.name;
    match shared.places.take(from.ip()) {
        Ok(place) => {
            let shared = Arc::clone(shared);
            tokio::spawn(async move {
                one::serve(&shared, stream, from, &place).await;
                drop(place);
                measure(name, &shared.places);
            });
        }
        Err(full) => refuse(&shared.port, &stream, full),
    }
    measure(name, &shared.places);
}

fn measure(port: &'static str, places: &Places) {
    let open = u32::try_from(places.count()).unwrap_or(u32::MAX);
    metrics::gauge!("connections_open", "port" => port).set(open);
}

/// Tells a client at once that there is no place, where that can be told without waiting for it.
fn refuse(port: &Port, stream: &TcpStream, full: Full) {
    metrics::counter!("connections_refused_total", "port" => port.name, "reason" => full.reason())
        .increment(1);
    if port.tls.is_none() && port.http.is_http1_available() {
        // What is read does not make the system reset the connection before the refusal has arrived.
        let _ = stream.try_read(&mut [0; 8192]);
        let _ = stream.try_write(REFUSAL);
    }
}
