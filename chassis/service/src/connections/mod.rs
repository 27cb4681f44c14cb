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
mod permits;
mod port;
mod settings;
mod unread;

pub use permits::network;
pub use port::Port;
pub use settings::{ConnectionSettings, Timeouts};

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{Request, Response};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;
use tower::Service;

use crate::stage::{Stage, asked_to_stop};

use permits::{Full, Permits};
use port::Shared;

/// A pause when the system refuses connections, for example for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long a connection that cannot be told of a stop may bring one more request.
const LAST_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
/// More than wait to be accepted on any port.
const MAX_BACKLOG: usize = 8192;
/// For HTTP/1 clients; others see that the connection ends.
const REFUSAL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Raises the number of files that this process may open to the most that it may ask for. To be called once, at start.
pub fn raise_file_limit() {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(files) => tracing::debug!(files, "open files are limited"),
        Err(error) => tracing::warn!(%error, "the limit of open files could not be raised"),
    }
}

/// Serves until asked to stop: through the port's `drain` with new connections, then what is in progress for `grace`.
pub async fn serve<S>(listener: TcpListener, service: S, port: Port, stop: watch::Receiver<Stage>)
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    let (drain, grace) = (port.drain, port.grace);
    let (ending, last) = watch::channel(None);
    let permits = Permits::new(port.max, port.max_from_one);
    let shared = Arc::new(Shared { service, port, permits, stop: stop.clone(), last });
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

/// Serves a connection if there is a permit for it.
fn take<S>(shared: &Arc<Shared<S>>, stream: TcpStream, from: SocketAddr)
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    let name = shared.port.name;
    match shared.permits.take(from.ip()) {
        Ok(permit) => {
            let shared = Arc::clone(shared);
            tokio::spawn(async move {
                one::serve(&shared, stream, from, &permit).await;
                drop(permit);
                measure(name, &shared.permits);
            });
        }
        Err(full) => refuse(&shared.port, &stream, full),
    }
    measure(name, &shared.permits);
}

fn measure(port: &'static str, permits: &Permits) {
    let open = u32::try_from(permits.count()).unwrap_or(u32::MAX);
    metrics::gauge!("connections_open", "port" => port).set(open);
}

/// Tells a client at once that there is no permit, where that can be told without waiting for it.
fn refuse(port: &Port, stream: &TcpStream, full: Full) {
    metrics::counter!("connections_refused_total", "port" => port.name, "reason" => full.reason())
        .increment(1);
    if port.tls.is_none() && port.http.is_http1_available() {
        // What is read does not make the system reset the connection before the refusal has arrived.
        let _ = stream.try_read(&mut [0; 8192]);
        let _ = stream.try_write(REFUSAL);
    }
}
