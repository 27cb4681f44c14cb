//! The connections of a port, for any HTTP service: their number, their timeouts, and how they end when the process
//! stops. Does not depend on routes.
//!
//! A connection that sends no request, stays idle, or does not read its response is closed. At the limit, the
//! connection that has been idle longest is closed, those without any request first; when none is idle, the new
//! connection is refused immediately.
//!
//! A stop loses no request. While the process drains, it serves everything, and responses over HTTP/1 close their
//! connection. Then HTTP/2 clients get GOAWAY, the accept queue is emptied, and the listener is closed. HTTP/1 has no
//! such message, so a connection between two requests, or before the first, may send one more for a short time.

mod activity;
mod answers;
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
use futures::future::BoxFuture;
use http::{Request, Response};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;
use tower::Service;

use crate::stage::{Stage, asked_to_stop};

use answers::Answers;
use permits::{Full, Permits};
use port::Shared;

/// The pause after a failed accept, for example when the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long a connection that cannot be notified of a stop may send one more request.
const LAST_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
/// Larger than the accept queue of any port.
const MAX_BACKLOG: usize = 8192;
/// Sent to HTTP/1 clients; for HTTP/2 and TLS the connection is closed without a response.
const REFUSAL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Raises the limit of open files of this process to its hard limit. Call it once, at start.
pub fn raise_file_limit() {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(files) => tracing::debug!(files, "limit of open files raised"),
        Err(error) => tracing::warn!(%error, "the limit of open files cannot be raised"),
    }
}

/// Serves until a stop is requested, then accepts new connections for the port's `drain`, and finishes requests in
/// progress within `grace`.
pub fn serve<S>(
    listener: TcpListener,
    service: S,
    port: Port,
    stop: watch::Receiver<Stage>,
) -> BoxFuture<'static, ()>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    serve_any(listener, Arc::new(service), port, stop)
}

fn serve_any(
    listener: TcpListener,
    service: Arc<dyn Answers>,
    port: Port,
    stop: watch::Receiver<Stage>,
) -> BoxFuture<'static, ()> {
    Box::pin(async move {
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
                    tracing::warn!(%error, "accept failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        ending.send_replace(Some(Instant::now() + LAST_REQUEST_TIMEOUT.min(grace)));
        accept_queued(&shared, listener);
        // Every connection holds a clone, so `ending` is closed when the last connection has dropped its receiver.
        drop(shared);
        if tokio::time::timeout(grace, ending.closed()).await.is_err() {
            tracing::warn!("stopped with requests still in progress");
        }
    })
}

/// Serves the connections in the accept queue, and closes the listener when the queue is empty.
fn accept_queued(shared: &Arc<Shared>, listener: TcpListener) {
    // The runtime caches readiness, which may be stale here, so the system is asked directly.
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
            Err(error) => tracing::debug!(%error, "accept failed"),
        }
    }
}

/// Serves a connection if there is a permit for it.
fn take(shared: &Arc<Shared>, stream: TcpStream, from: SocketAddr) {
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

/// Refuses a connection for which there is no permit. Never waits for the client, so it writes only where one
/// non-blocking write is enough.
fn refuse(port: &Port, stream: &TcpStream, full: Full) {
    metrics::counter!("connections_refused_total", "port" => port.name, "reason" => full.reason())
        .increment(1);
    if port.tls.is_none() && port.http.is_http1_available() {
        // Unread bytes would make the system reset the connection before the refusal arrives.
        let _ = stream.try_read(&mut [0; 8192]);
        let _ = stream.try_write(REFUSAL);
    }
}
