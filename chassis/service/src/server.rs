//! Serving: the gRPC port, the operators' port, and a stop in two stages.

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
use crate::telemetry;

/// Calls in progress on one connection.
const MAX_STREAMS: u32 = 1024;
/// Connections to the port for operators: probes, a collector of measurements, and people.
const MAX_OPERATORS: u32 = 128;
/// With TLS a connection is asked to end after so long, when its calls are over: a certificate that was replaced, or an
/// authority that is no longer trusted, is not used for longer than this.
const TLS_CONNECTION_AGE: Duration = Duration::from_hours(1);

/// What a service serves and does.
pub struct Parts {
    pub routes: RoutesBuilder,
    pub workers: Vec<Worker>,
    /// Serves what is not gRPC.
    pub besides: BoxFuture<'static, Result<(), String>>,
}

/// Serves a service on its configured addresses until `stop` says so.
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
    // Both end in the second stage of a stop, at the same time.
    let resting = async {
        asked_to_stop(stop.clone()).await;
        tokio::time::sleep(settings.stop.drain()).await;
        working.stop(settings.stop.grace()).await;
        Ok(())
    };
    let mesh = Mesh { tokens: &runtime.tokens, clock: &runtime.clock, tls: &runtime.tls };
    tokio::try_join!(serve_grpc(listener, routes, mesh, settings, stop.clone()), besides, resting)?;
    runtime.db.close().await;
    tracing::info!(service = runtime.name, "stopped");
    Ok(())
}

/// What calls are admitted with.
#[derive(Clone, Copy)]
pub struct Mesh<'a> {
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
pub async fn serve_grpc(
    listener: TcpListener,
    mut routes: RoutesBuilder,
    Mesh { tokens, clock, tls }: Mesh<'_>,
    settings: &Settings,
    stop: watch::Receiver<Stage>,
) -> Result<(), String> {
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_service_status("", ServingStatus::Serving).await;
    routes.add_service(health_service);
    if settings.environment == Environment::Development {
        add_reflection(&mut routes).map_err(|error| format!("reflection is not usable: {error}"))?;
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
    let told = tell(health, stop.clone());
    let serving = connections::serve(listener, service, port, stop);
    // Whoever stays connected goes on asking for the health until the end.
    tokio::select! {
        () = serving => Ok(()),
        never = told => match never {},
    }
}

/// The first stage of a stop: callers and probes are told to go elsewhere while everything is still served.
async fn tell(health: HealthReporter, stop: watch::Receiver<Stage>) -> Infallible {
    asked_to_stop(stop).await;
    health.set_service_status("", ServingStatus::NotServing).await;
    std::future::pending().await
}

/// In both versions of the protocol: many tools still speak only the first.
fn add_reflection(routes: &mut RoutesBuilder) -> Result<(), tonic_reflection::server::Error> {
    let builder = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(proto::REFLECTION)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    routes.add_service(builder().build_v1()?);
    routes.add_service(builder().build_v1alpha()?);
    Ok(())
}

/// What `/readyz` answers: nothing new should come as soon as a stop has begun, and before that whatever `ready` says.
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

/// Serves `/metrics`, `/healthz` (the process is up) and `/readyz` (it can take more work), for operators only. `ready`
/// says what it is ready for, or why not.
pub async fn serve_operators<F, R>(listener: TcpListener, port: Port, stop: watch::Receiver<Stage>, ready: F)
where
    F: Fn() -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Result<String, String>> + Send,
{
    // Installed now, so that the first measurements are not lost.
    let metrics = telemetry::metrics();
    let show = move || async move {
        metrics.map(metrics_exporter_prometheus::PrometheusHandle::render).unwrap_or_default()
    };
    let readyz = move || async move { self::readyz(&stop, ready()).await };
    let app = Router::new()
        .route("/metrics", get(show))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz));
    // Told to the last moment: it ends with the process.
    let (_running, never) = watch::channel(Stage::Running);
    connections::serve(listener, app, port, never).await;
}
