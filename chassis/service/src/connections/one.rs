//! One connection from its first byte to its end.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use http::{HeaderValue, Request, Response, Version, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tonic::transport::server::{Connected, TcpConnectInfo, TlsConnectInfo};

use super::activity::{Activity, End, InProgress};
use super::answers::Answers;
use super::body::Watched;
use super::io::Timed;
use super::permits::Permit;
use super::port::Shared;
use super::settings::Timeouts;
use super::unread::Unread;
use crate::stage::Stage;

/// How long a client may take to close an idle connection after it was asked to.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A connection with or without TLS. Its type is left out, so that hyper's server is compiled once.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<IO: AsyncRead + AsyncWrite + Unpin + Send> Stream for IO {}

pub(super) async fn serve(shared: &Shared, stream: TcpStream, from: SocketAddr, permit: &Permit) {
    // Without this, small responses wait for the client's acknowledgement. A closed socket fails on its first use.
    let _ = stream.set_nodelay(true);
    match &shared.port.tls {
        None => drive(shared, Box::new(stream), from, None, permit).await,
        Some(tls) => {
            if let Some(stream) = tls.accept(stream).await {
                let info = stream.connect_info();
                drive(shared, Box::new(stream), from, Some(info), permit).await;
            }
        }
    }
}

/// `certified` has the certificate of the client.
async fn drive(
    shared: &Shared,
    io: Box<dyn Stream>,
    from: SocketAddr,
    certified: Option<TlsConnectInfo<TcpConnectInfo>>,
    permit: &Permit,
) {
    let (port, activity) = (&shared.port, &permit.activity);
    let io = TokioIo::new(Timed::new(io, Arc::clone(activity), port.timeouts.write));
    let service = service_fn(|request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(from));
        if let Some(certified) = &certified {
            request.extensions_mut().insert(certified.clone());
        }
        answer(Arc::clone(&shared.service), request, activity, shared.stop.clone())
    });
    let mut connection = std::pin::pin!(port.http.serve_connection(io, service));
    let end = tokio::select! {
        // The connection is polled first, so that a request that has arrived is served even when a timeout is due.
        biased;
        ended = connection.as_mut() => return report(port.name, ended),
        end = activity.end(&port.timeouts, shared.last.clone()) => end,
        () = aged(port.max_age) => End::Old,
    };
    count(port.name, end);
    if !activity.is_used() {
        return;
    }
    connection.as_mut().graceful_shutdown();
    let close_timeout = async {
        match end {
            End::Old | End::Stop => {
                // Requests that were in flight when the client was asked to close still arrive.
                tokio::time::sleep(CLOSE_TIMEOUT).await;
                let (_never, last) = watch::channel(None);
                let timeouts = Timeouts { idle: CLOSE_TIMEOUT, ..port.timeouts };
                let _ = activity.end(&timeouts, last).await;
            }
            // Other requests may be in progress on the connection besides the one whose response is not read.
            End::Write => tokio::time::sleep(port.timeouts.head).await,
            End::Head | End::Idle | End::Crowded => tokio::time::sleep(CLOSE_TIMEOUT).await,
        }
    };
    tokio::select! {
        ended = connection.as_mut() => report(port.name, ended),
        () = close_timeout => {}
    }
}

/// Responds to a request, and keeps it in progress until the client has taken the response.
fn answer(
    service: Arc<dyn Answers>,
    request: Request<Body>,
    activity: &Arc<Activity>,
    stop: watch::Receiver<Stage>,
) -> impl Future<Output = Result<Response<Watched>, Infallible>> + Send + use<> {
    let http1 = request.version() < Version::HTTP_2;
    let in_progress = InProgress::begin(activity, http1);
    if *stop.borrow() >= Stage::Draining {
        activity.wake();
    }
    async move {
        if !http1 {
            // Each request has its own stream: an unread body resets only its stream, and GOAWAY ends the connection.
            let response = service.answer(request).await?;
            return Ok(response.map(|body| Watched::new(body, in_progress)));
        }
        let (request, unread) = Unread::watch(request);
        let mut response = service.answer(request).await?;
        let reusable = unread.discard().await;
        if !reusable || *stop.borrow() >= Stage::Draining {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(response.map(|body| Watched::new(body, in_progress)))
    }
}

async fn aged(max_age: Option<Duration>) {
    match max_age {
        Some(max_age) => tokio::time::sleep(max_age).await,
        None => std::future::pending().await,
    }
}

fn count(port: &'static str, end: End) {
    if let Some(reason) = end.reason() {
        metrics::counter!("connections_closed_total", "port" => port, "reason" => reason).increment(1);
    }
}

fn report(port: &'static str, ended: Result<(), Box<dyn Error + Send + Sync>>) {
    let Err(error) = ended else { return };
    if timed_out(&*error) {
        count(port, End::Write);
    }
    tracing::debug!(error, "connection ended with an error");
}

/// Whether the connection failed because nothing could be written for too long.
fn timed_out(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(err) = cause {
        if err.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == std::io::ErrorKind::TimedOut) {
            return true;
        }
        cause = err.source();
    }
    false
}
