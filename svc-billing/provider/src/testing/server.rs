//! The stand-in's connections: each request is answered, or gets the trouble that a test wished for it.

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

use super::api::{Call, problem};
use super::state::{Reply, State};

/// Above any honest answer, and still JSON: only a limit stops it.
const HUGE: usize = 5 * 1024 * 1024;

/// What goes wrong with a request. With all but `Busy` and `Refusing` the work is done first: the worst case for whoever
/// asked.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// The answer never comes.
    Silent,
    /// The connection ends instead of an answer.
    Dropped,
    /// 429; nothing was done.
    Busy { retry_after: Option<u64> },
    /// A status such as 500 or 503.
    Failing(u16),
    /// 200 with a body that is not JSON.
    Garbled,
    /// 200 with more than anyone should read.
    Huge,
    /// A status such as 422, with Mollie's form of an error; nothing was done.
    Refusing { status: u16, detail: String, field: Option<String> },
}

pub async fn serve(listener: TcpListener, state: Arc<Mutex<State>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(connection(stream, Arc::clone(&state)));
    }
}

async fn connection(stream: TcpStream, state: Arc<Mutex<State>>) {
    let end = Arc::new(Notify::new());
    let service = service_fn(|request| answer(request, &state, &end));
    // A client that goes away ends its own connection only.
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
    let (trouble, reply) = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.requests += 1;
        let trouble = state.take_trouble(&call.method);
        let reply = if authorization == format!("Bearer {}", state.api_key) {
            refused(trouble.as_ref()).unwrap_or_else(|| state.answer(&call))
        } else {
            problem(401, "Missing authentication, or failed to authenticate", None)
        };
        (trouble, reply)
    };
    Ok(spoil(trouble, &reply, end).await)
}

/// The answer of a trouble that comes before the work.
fn refused(trouble: Option<&Trouble>) -> Option<Reply> {
    match trouble? {
        Trouble::Busy { .. } => Some(problem(429, "Too many requests", None)),
        Trouble::Refusing { status, detail, field } => Some(problem(*status, detail, field.as_deref())),
        _ => None,
    }
}

async fn spoil(trouble: Option<Trouble>, reply: &Reply, end: &Notify) -> Response<Full<Bytes>> {
    let mut response = respond(reply.0, reply.1.to_string());
    match trouble {
        None | Some(Trouble::Refusing { .. }) => {}
        Some(Trouble::Silent) => pending().await,
        Some(Trouble::Dropped) => {
            end.notify_one();
            pending::<()>().await;
        }
        Some(Trouble::Busy { retry_after }) => {
            if let Some(seconds) = retry_after {
                response.headers_mut().insert(RETRY_AFTER, seconds.into());
            }
        }
        Some(Trouble::Failing(status)) => {
            response = respond(status, problem(status, "Something went wrong", None).1.to_string());
        }
        Some(Trouble::Huge) => response = respond(200, format!("{}{}", " ".repeat(HUGE), reply.1)),
        Some(Trouble::Garbled) => response = respond(200, "<html><body>Welcome!</body></html>".to_owned()),
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
