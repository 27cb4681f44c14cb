//! Accepts connections and speaks HTTP/1.1 and HTTP/2 on them, with limits on slow and idle clients.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use chassis::server::{Stage, asked_to_stop};
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tower::ServiceExt;

/// How long a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
const MAX_STREAMS: u32 = 256;
/// A pause when the system refuses connections, for example for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until asked to stop: `drain` longer with new connections, then `grace` for what is in progress.
pub async fn serve_http(
    listener: TcpListener,
    router: Router,
    stop: watch::Receiver<Stage>,
    drain: Duration,
    grace: Duration,
) {
    let connections = GracefulShutdown::new();
    let builder = connection_builder();
    let mut stopped = std::pin::pin!(async {
        asked_to_stop(stop).await;
        tokio::time::sleep(drain).await;
    });
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stopped => break,
        };
        match accepted {
            Ok((stream, from)) => serve_connection(stream, from, &builder, &connections, router.clone()),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(grace, connections.shutdown()).await.is_err() {
        tracing::warn!("stopped with requests still in progress");
    }
}

fn connection_builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .keep_alive_interval(Some(Duration::from_secs(30)));
    builder
}

fn serve_connection(
    stream: TcpStream,
    from: SocketAddr,
    builder: &Builder<TokioExecutor>,
    connections: &GracefulShutdown,
    router: Router,
) {
    // Without it small answers wait for the client's acknowledgement. A socket that is gone fails when it is used.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(from));
        router.clone().oneshot(request)
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
    let connection = connections.watch(connection);
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error, "a connection ended early");
        }
    });
}
