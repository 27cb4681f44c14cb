//! The HTTP side: a router made from the contract, request ids, cross-origin requests, and the pages beside the API.

mod admit;
mod answer;
mod body;
mod budget;
mod bulkhead;
mod client;
mod cors;
mod download;
mod operation;
pub mod problem;
mod public;
mod upstream;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use chassis::server::Stage;
use http::{HeaderMap, HeaderValue, Request, header};
use proto::api::Problem;
use tokio::sync::{Semaphore, watch};
use tracing::Instrument;

use self::client::ClientOf;
use self::problem::Refusal;
use crate::contract::Operation;
use crate::keys::{Authenticator, KeptTokens};
use crate::limits::Limits;
use crate::readiness::Readiness;
use crate::serve::Runtime;

pub use budget::Budget;
pub use bulkhead::Bulkhead;
pub use client::Proxies;
pub use cors::Cors;
pub use upstream::Upstreams;

/// What handlers work with.
pub struct App {
    pub runtime: Runtime,
    pub keys: Authenticator,
    pub limits: Arc<Limits>,
    pub upstreams: Upstreams,
    /// Longest time for a request.
    pub deadline: Duration,
    /// Requests that may be looked at for their key at once.
    pub admissions: Semaphore,
    /// Requests that may be in progress at once, for each service.
    pub places: Bulkhead,
    pub budgets: Budgets,
    pub cors: Cors,
    /// The context tokens of requests without a key.
    pub public_tokens: KeptTokens,
    /// Who says which client a request comes from.
    pub proxies: Proxies,
    pub readiness: Readiness,
    /// How far a stop has come.
    pub stop: watch::Receiver<Stage>,
}

/// What may be in flight, in bytes. Each is for itself: whoever reads no file keeps nobody from reading a list.
pub struct Budgets {
    /// Bodies of requests, until they are answered.
    pub requests: Budget,
    /// Answers that are there as a whole, until they are written.
    pub answers: Budget,
    /// Answers that are passed on as they come.
    pub downloads: Budget,
}

impl Budgets {
    /// `incoming` and `outgoing` are bytes.
    pub fn new(incoming: usize, outgoing: usize) -> Self {
        Self {
            requests: Budget::new("requests", incoming),
            answers: Budget::new("answers", outgoing / 4),
            downloads: Budget::new("downloads", outgoing / 4 * 3),
        }
    }
}

type Shared = State<Arc<App>>;

/// The id of a request, made or taken over by the outermost layer.
#[derive(Clone)]
struct RequestId(Arc<str>);

/// Every route: the operations of the contract, and the pages beside them.
pub fn router(app: Arc<App>, operations: Vec<Operation>) -> Router {
    let mut paths: BTreeMap<String, Vec<Arc<Operation>>> = BTreeMap::new();
    for operation in operations {
        paths.entry(operation.path.clone()).or_default().push(Arc::new(operation));
    }
    let mut router = Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .merge(crate::pages::router());
    for (path, operations) in paths {
        router = router.route(&path, method_router(&operations));
    }
    router
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&app), every_request))
        .with_state(app)
}

/// The operations of one path, with an answer for every other method.
fn method_router(operations: &[Arc<Operation>]) -> MethodRouter<Arc<App>> {
    let mut methods = vec!["OPTIONS"];
    methods.extend(operations.iter().map(|operation| operation.method.as_str()));
    if methods.contains(&"GET") {
        methods.push("HEAD");
    }
    methods.sort_unstable();
    let allow = HeaderValue::try_from(methods.join(", ")).unwrap_or(HeaderValue::from_static("OPTIONS"));
    let mut router = MethodRouter::new();
    for operation in operations {
        let operation = Arc::clone(operation);
        let filter = axum::routing::MethodFilter::try_from(operation.method.clone());
        let handler = move |State(app): Shared,
                            RequestIdOf(id): RequestIdOf,
                            ClientOf(from): ClientOf,
                            request: Request<Body>| {
            let operation = Arc::clone(&operation);
            async move { measured(&app, &operation, request, &id, from).await }
        };
        // The contract knows no other methods than those that have a filter.
        if let Ok(filter) = filter {
            router = router.on(filter, handler);
        }
    }
    let options = allow.clone();
    // The contract has refused a path that is public in part.
    let public = operations.iter().any(|operation| operation.is_public());
    let router = router
        .options(
            async move |State(app): Shared, request: Request<Body>| {
                if public { Cors::methods(&options) } else { app.cors.preflight(&request, &options) }
            },
        )
        .fallback(async move |RequestIdOf(id): RequestIdOf, request: Request<Body>| {
            let detail = format!(
                "{} is not possible here; {} are.",
                request.method(),
                allow.to_str().unwrap_or_default()
            );
            Refusal::new(Problem::MethodNotAllowed, detail)
                .with_header(header::ALLOW, allow.clone())
                .into_response(&id)
        });
    if public { router.layer(axum::middleware::from_fn(public::finish)) } else { router }
}

/// Runs an operation and measures it.
async fn measured(
    app: &App,
    operation: &Operation,
    request: Request<Body>,
    id: &str,
    from: IpAddr,
) -> Response {
    let started = Instant::now();
    let span = tracing::info_span!("request", request_id = id, operation = operation.name);
    chassis::telemetry::continue_trace(&span, request.headers());
    let response = operation::handle(app, operation, request, id, from).instrument(span).await;
    let status = response.status().as_u16().to_string();
    metrics::histogram!("http_request_seconds", "operation" => operation.name.clone(), "status" => status)
        .record(started.elapsed());
    response
}

/// Gives the request its id, and every answer the id and what browsers need.
async fn every_request(State(app): Shared, mut request: Request<Body>, next: Next) -> Response {
    let id = request_id(&request).unwrap_or_else(|| app.runtime.clock.id().to_string());
    let origin = request.headers().get(header::ORIGIN).cloned();
    request.extensions_mut().insert(RequestId(id.as_str().into()));
    let mut response = next.run(request).await;
    if let Ok(value) = HeaderValue::try_from(id) {
        response.headers_mut().insert("x-request-id", value);
    }
    if response.extensions().get::<public::OwnSiteOnly>().is_none() {
        app.cors.allow(origin.as_ref(), response.headers_mut());
    }
    response
}

/// The caller's own id, when it is 1 to 128 visible ASCII characters.
fn request_id(request: &Request<Body>) -> Option<String> {
    let value = request.headers().get("x-request-id")?;
    let usable = (1..=128).contains(&value.len()) && value.as_bytes().iter().all(u8::is_ascii_graphic);
    value.to_str().ok().filter(|_| usable).map(str::to_owned)
}

struct RequestIdOf(Arc<str>);

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for RequestIdOf {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut http::request::Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self(parts.extensions.get::<RequestId>().map_or_else(|| "".into(), |id| Arc::clone(&id.0))))
    }
}

async fn not_found(RequestIdOf(id): RequestIdOf) -> Response {
    Refusal::new(Problem::NotFound, "There is nothing at this path. See /docs for the reference.")
        .into_response(&id)
}

/// For the pages beside the API, which are only read.
async fn method_not_allowed(RequestIdOf(id): RequestIdOf) -> Response {
    Refusal::new(Problem::MethodNotAllowed, "This page can only be read, with GET or HEAD.")
        .with_header(header::ALLOW, HeaderValue::from_static("GET, HEAD"))
        .into_response(&id)
}

/// Whether the gateway can serve; with `?mesh`, whether everything behind it is there too.
async fn readyz(
    State(app): Shared,
    RequestIdOf(id): RequestIdOf,
    ClientOf(from): ClientOf,
    RawQuery(query): RawQuery,
) -> Response {
    let mut headers = HeaderMap::new();
    if let Err(refusal) = admit::within(app.limits.readiness.check(from), &mut headers) {
        return refusal.into_response(&id);
    }
    let ready = async {
        match query.as_deref() {
            Some("mesh") => app.readiness.check_mesh().await,
            _ => app.readiness.check().await,
        }
    };
    chassis::server::readyz(&app.stop, ready).await.into_response()
}
