//! Serves the gRPC port and the operators' port, and stops them in two stages.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::http::{Request, Response, StatusCode};
use axum::routing::get;
use chassis_base::{Clock, Environment};
use chassis_data::db::Db;
use chassis_rpc::mesh::MeshLayer;
use chassis_rpc::peer::MAX_HEADERS;
use chassis_rpc::tls::{Callers, Tls};
use chassis_rpc::token::Tokens;
use chassis_work::worker::Workers;
use chassis_work::{Worker, backlog};
use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::service::RoutesBuilder;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tower::{Layer, ServiceExt};

use crate::config::Settings;
use crate::connections::{self, Port};
use crate::runtime::Runtime;
use crate::stage::{Stage, asked_to_stop};
use crate::{reflection, telemetry};

/// The maximum number of calls in progress on one connection.
const MAX_STREAMS: u32 = 1024;
/// The maximum number of connections to the operators' port: probes, a metrics collector, and people.
const MAX_OPERATORS: u32 = 128;
/// With TLS, a connection is closed at this age, after its calls: a certificate that was replaced, or an authority that
/// is no longer trusted, stays in use no longer.
const TLS_CONNECTION_AGE: Duration = Duration::from_hours(1);

/// The routes and the background work of a service.
pub struct Parts {
    pub routes: RoutesBuilder,
    pub workers: Vec<Worker>,
    /// Serves protocols other than gRPC.
    pub besides: BoxFuture<'static, Result<(), String>>,
}

/// Runs a service on its configured addresses until `stop` changes.
pub async fn serve(
    parts: Parts,
    runtime: Runtime,
    settings: &Settings,
    stop: watch::Receiver<Stage>,
) -> Result<(), String> {
    let Parts { routes, workers, besides } = parts;
    let listener = bind(settings.listen).await?;
    let operators = bind(settings.metrics_listen).await?;
    tracing::info!(service = runtime.name, listen = %settings.listen, "serving");
    let db = runtime.db.clone();
    let port = operators_port(settings);
    tokio::spawn(serve_operators(operators, port, stop.clone(), move || ready(db.clone())));
    let working = Workers::start(&runtime.db, workers, settings.workers.timing());
    tokio::spawn(backlog::watch(runtime.db.clone(), working.is_first()));
    // Calls and workers end in the second stage of a stop, at the same time.
    let stopping = async {
        asked_to_stop(stop.clone()).await;
        tokio::time::sleep(settings.stop.drain()).await;
        working.stop(settings.stop.grace()).await;
        Ok(())
    };
    let authentication = Authentication { tokens: &runtime.tokens, clock: &runtime.clock, tls: &runtime.tls };
    tokio::try_join!(
        serve_grpc(listener, routes, authentication, settings, stop.clone()),
        besides,
        stopping
    )?;
    runtime.db.close().await;
    tracing::info!(service = runtime.name, "stopped");
    Ok(())
}

/// The means to authenticate calls.
#[derive(Clone, Copy)]
pub struct Authentication<'a> {
    pub tokens: &'a Tokens,
    pub clock: &'a Clock,
    pub tls: &'a Tls,
}

pub async fn bind(address: std::net::SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address).await.map_err(|error| format!("cannot listen on {address}: {error}"))
}

async fn ready(db: Db) -> Result<String, String> {
    db.ping().await.map(|()| "ready".to_owned()).map_err(|error| error.to_string())
}

/// Serves gRPC with health, reflection outside production, limits and deadlines.
pub fn serve_grpc<'a>(
    listener: TcpListener,
    routes: RoutesBuilder,
    authentication: Authentication<'a>,
    settings: &'a Settings,
    stop: watch::Receiver<Stage>,
) -> BoxFuture<'a, Result<(), String>> {
    // Boxed, so that the programs do not compile it again.
    Box::pin(serve_routes(listener, routes, authentication, settings, stop))
}

async fn serve_routes(
    listener: TcpListener,
    mut routes: RoutesBuilder,
    Authentication { tokens, clock, tls }: Authentication<'_>,
    settings: &Settings,
    stop: watch::Receiver<Stage>,
) -> Result<(), String> {
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_service_status("", ServingStatus::Serving).await;
    routes.add_service(health_service);
    if settings.environment == Environment::Development {
        reflection::add(&mut routes);
    }
    let callers = Callers::of(&settings.tls)?;
    let mesh =
        MeshLayer::new(tokens.clone(), clock.clone(), settings.deadline(), settings.max_in_flight, callers);
    let mut port =
        Port::new("grpc", &settings.connections, &settings.stop, settings.connections.max_connections, 4);
    port.http = port.http.http2_only();
    port.http.http2().max_header_list_size(MAX_HEADERS).max_concurrent_streams(MAX_STREAMS);
    if tls.serves() {
        port.tls = Some(tls.clone());
        port.max_age = Some(TLS_CONNECTION_AGE);
    }
    let service = mesh
        .layer(routes.routes().prepare())
        .map_request(|request: Request<axum::body::Body>| request.map(tonic::body::Body::new))
        .map_response(|response: Response<tonic::body::Body>| response.map(axum::body::Body::new));
    let draining = report_draining(health, stop.clone());
    let serving = connections::serve(listener, service, port, stop);
    // The reporter lives as long as the server: callers that stay connected check the health until the end.
    tokio::select! {
        () = serving => Ok(()),
        never = draining => match never {},
    }
}

/// The first stage of a stop: the health turns to NOT_SERVING, so that callers and probes go elsewhere while everything
/// is still served.
async fn report_draining(health: HealthReporter, stop: watch::Receiver<Stage>) -> Infallible {
    asked_to_stop(stop).await;
    health.set_service_status("", ServingStatus::NotServing).await;
    std::future::pending().await
}

/// The response of `/readyz`: "stopping" once a stop has begun, and before that the result of `ready`.
pub async fn readyz(
    stop: &watch::Receiver<Stage>,
    ready: impl Future<Output = Result<String, String>>,
) -> (StatusCode, String) {
    if *stop.borrow() >= Stage::Draining {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n".to_owned());
    }
    match ready.await {
        Ok(said) => (StatusCode::OK, format!("{said}\n")),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
    }
}

/// The port of [`serve_operators`].
pub fn operators_port(settings: &Settings) -> Port {
    let max = MAX_OPERATORS.min(settings.connections.max_connections);
    Port::new("operators", &settings.connections, &settings.stop, max, 16)
}

/// Serves `/metrics`, `/healthz` (the process is up) and `/readyz` (it can take more work), for operators only, and keeps
/// the metrics small. `ready` returns the text of `/readyz`, or why the process is not ready.
pub async fn serve_operators<F, R>(listener: TcpListener, port: Port, stop: watch::Receiver<Stage>, ready: F)
where
    F: Fn() -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Result<String, String>> + Send,
{
    // The recorder is installed before the first request, so that no measurement is lost.
    let metrics = telemetry::metrics();
    let show = move || async move {
        metrics.map(metrics_exporter_prometheus::PrometheusHandle::render).unwrap_or_default()
    };
    let readyz = move || async move { self::readyz(&stop, ready()).await };
    let app = Router::new()
        .route("/metrics", get(show))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz));
    // This port ignores the stop and ends with the process, so that operators can observe the whole stop.
    let (_running, never) = watch::channel(Stage::Running);
    tokio::select! {
        () = connections::serve(listener, app, port, never) => {}
        never = telemetry::keep_up(telemetry::UPKEEP) => match never {},
    }
}
