//! The stand-in's HTTP server. It answers each request, or applies the fault that a test injected for it.

use std::convert::Infallible;
use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};

use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::{Request, Response};
use http_body_util::{BodyExt, Collected, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::api::Call;
use super::fault::InjectedFault;
use super::reply::Reply;
use super::state::State;

/// Bytes of padding. Larger than any real answer and still valid JSON, so that only a size limit rejects it.
const HUGE: usize = 5 * 1024 * 1024;

pub(super) async fn serve(listener: TcpListener, state: Arc<Mutex<State>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(connection(stream, Arc::clone(&state)));
    }
}

async fn connection(stream: TcpStream, state: Arc<Mutex<State>>) {
    let end = Arc::new(Notify::new());
    let service = service_fn(|request| answer(request, &state, &end));
    // A client that disconnects ends its own connection only.
    tokio::select! {
        _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service) => {}
        () = end.notified() => {}
    }
}

async fn answer(
    request: Request<Incoming>,
    state: &Mutex<State>,
    end: &Notify,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let authorization = header(AUTHORIZATION.as_str()).unwrap_or_default();
    let key = header("idempotency-key");
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
    let call = Call {
        method: parts.method,
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        key,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    let (fault, reply) = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.requests += 1;
        let fault = state.take_fault(&call.method);
        let reply = if authorization == format!("Bearer {}", state.api_key) {
            refusal(fault.as_ref()).unwrap_or_else(|| state.answer(&call))
        } else {
            Reply::problem(401, "Missing authentication, or failed to authenticate", None)
        };
        (fault, reply)
    };
    Ok(apply_fault(fault, &reply, end).await)
}

/// The answer of a fault that keeps the request from being carried out.
fn refusal(fault: Option<&InjectedFault>) -> Option<Reply> {
    match fault? {
        InjectedFault::Busy { .. } => Some(Reply::problem(429, "Too many requests", None)),
        InjectedFault::Refusing { status, detail, field } => {
            Some(Reply::problem(*status, detail, field.as_deref()))
        }
        _ => None,
    }
}

async fn apply_fault(fault: Option<InjectedFault>, reply: &Reply, end: &Notify) -> Response<Full<Bytes>> {
    let mut response = respond(reply.status, reply.body.to_string());
    match fault {
        None | Some(InjectedFault::Refusing { .. }) => {}
        Some(InjectedFault::Silent) => pending().await,
        Some(InjectedFault::Dropped) => {
            end.notify_one();
            pending::<()>().await;
        }
        Some(InjectedFault::Busy { retry_after }) => {
            if let Some(seconds) = retry_after {
                response.headers_mut().insert(RETRY_AFTER, seconds.into());
            }
        }
        Some(InjectedFault::Failing(status)) => {
            response = respond(status, Reply::problem(status, "Something went wrong", None).body.to_string());
        }
        Some(InjectedFault::Huge) => response = respond(200, format!("{}{}", " ".repeat(HUGE), reply.body)),
        Some(InjectedFault::Garbled) => {
            response = respond(200, "<html><body>Welcome!</body></html>".to_owned());
        }
    }
    response
}

fn respond(status: u16, body: String) -> Response<Full<Bytes>> {
    Response::builder()
        .status(status)
        .header(CONTENT_TYPE, "application/hal+json")
        .body(Full::new(Bytes::from(body)))
        .expect("a response")
}
