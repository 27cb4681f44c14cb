//! The HTTP side: a router made from the contract, and the pages beside the API. What one request goes through is in
//! `operation.rs`.

mod accept;
mod admission;
mod app;
mod batch;
mod body;
mod byte_budget;
mod changes;
mod client_address;
mod compress;
mod concurrency_limit;
mod conditional;
mod cors;
mod download;
mod expand;
mod form_body;
mod operation;
mod operation_table;
mod own;
mod own_services;
mod preference;
pub mod problem;
mod public;
mod rehearsal;
mod request_id;
mod response;
mod service_call;
mod tables;
mod upload;
mod upstream;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use chassis_transcode::contract::Operation;
use http::{HeaderMap, HeaderValue, Request, header};
use proto::api::Problem;
use tracing::Instrument;

use self::client_address::ClientAddress;
use self::problem::Refusal;
use self::request_id::RequestId;
use crate::pages::{Language, error_page_in};

pub use app::{App, ByteBudgets};
pub use body::MAX_BODY;
pub use byte_budget::ByteBudget;
pub use client_address::Proxies;
pub use concurrency_limit::ConcurrencyLimit;
pub use cors::Cors;
pub use operation_table::OperationTable;
pub use own_services::OwnServices;
pub use upstream::Upstreams;

type Shared = State<Arc<App>>;

/// Every route: the operations of the contract, and the pages beside them.
pub fn router(app: Arc<App>) -> Router {
    let mut paths: BTreeMap<String, Vec<Arc<Operation>>> = BTreeMap::new();
    for operation in app.operations.iter() {
        paths.entry(operation.path.clone()).or_default().push(Arc::clone(operation));
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
        .layer(compress::layer())
        // The outermost layer: refusals of every kind need the id and the headers that it adds.
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&app), every_request))
        .with_state(app)
}

/// The operations of one path, with a response for every other method.
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
                            RequestId(id): RequestId,
                            ClientAddress(from): ClientAddress,
                            request: Request<Body>| {
            let operation = Arc::clone(&operation);
            async move { measured(&app, &operation, request, &id, from).await }
        };
        // Every method that the contract can have has a filter.
        if let Ok(filter) = filter {
            router = router.on(filter, handler);
        }
    }
    let options = allow.clone();
    // `contract.rs` refuses a path of which only some operations are public.
    let public = operations.iter().any(|operation| operation.is_public());
    let router = router
        .options(
            async move |State(app): Shared, request: Request<Body>| {
                if public { Cors::methods(&options) } else { app.cors.preflight(&request, &options) }
            },
        )
        .fallback(async move |RequestId(id): RequestId, request: Request<Body>| {
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

/// Runs an operation in a span of its own, and records its duration.
async fn measured(
    app: &App,
    operation: &Operation,
    request: Request<Body>,
    id: &str,
    from: IpAddr,
) -> Response {
    let started = Instant::now();
    let span = tracing::info_span!("request", request_id = id, operation = operation.name);
    chassis_rpc::trace::continue_trace(&span, request.headers());
    let response = operation::handle(app, operation, request, id, from).instrument(span).await;
    let status = response.status().as_u16().to_string();
    metrics::histogram!("http_request_seconds", "operation" => operation.name.clone(), "status" => status)
        .record(started.elapsed());
    response
}

/// Gives the request its id, and every response the id and the CORS headers.
async fn every_request(State(app): Shared, mut request: Request<Body>, next: Next) -> Response {
    let id = request_id::sent(&request).unwrap_or_else(|| app.runtime.clock.id().to_string());
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

/// A page in the browser's language for people, and the error of the API for programs.
async fn not_found(RequestId(id): RequestId, headers: HeaderMap) -> Response {
    let detail = "There is nothing at this path. See /docs for the reference.";
    let mut response = Refusal::new(Problem::NotFound, detail).into_response(&id);
    if accept::prefers_page(&headers) {
        let page = error_page_in(Language::accepted(&headers), Problem::NotFound, "", &[], &id);
        response = public::shown_as(response, page);
    }
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept, Accept-Language"));
    response
}

/// For the pages beside the API, which are only read.
async fn method_not_allowed(RequestId(id): RequestId) -> Response {
    Refusal::new(Problem::MethodNotAllowed, "This page can only be read, with GET or HEAD.")
        .with_header(header::ALLOW, HeaderValue::from_static("GET, HEAD"))
        .into_response(&id)
}

/// Whether the gateway can serve; with `?mesh`, whether every service behind it answers too.
async fn readyz(
    State(app): Shared,
    RequestId(id): RequestId,
    ClientAddress(from): ClientAddress,
    RawQuery(query): RawQuery,
) -> Response {
    let mut headers = HeaderMap::new();
    if let Err(refusal) = admission::within(app.limits.readiness.check(from), &mut headers) {
        return refusal.into_response(&id);
    }
    let ready = async {
        match query.as_deref() {
            Some("mesh") => app.readiness.check_mesh().await,
            _ => app.readiness.check().await,
        }
    };
    chassis_service::server::readyz(&app.stop, ready).await.into_response()
}
