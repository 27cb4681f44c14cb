//! Serving: the gRPC port, the operators' port, and a stop in two stages.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::http::{Request, Response, StatusCode};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::service::RoutesBuilder;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tower::{Layer, ServiceExt};

use crate::backlog;
use crate::clock::Clock;
use crate::config::{Environment, Settings};
use crate::connections::{self, Port};
use crate::db::Db;
use crate::mesh::MeshLayer;
use crate::peer::MAX_HEADERS;
use crate::service::{Definition, Runtime, routes, workers};
use crate::telemetry;
use crate::tls::{Callers, Tls};
use crate::token::Tokens;
use crate::worker::Workers;

/// Calls in progress on one connection.
const MAX_STREAMS: u32 = 1024;
/// Connections to the port for operators: probes, a collector of measurements, and people.
const MAX_OPERATORS: u32 = 128;
/// With TLS a connection is asked to end after so long, when its calls are over: a certificate that was replaced, or an
/// authority that is no longer trusted, is not used for longer than this.
const TLS_CONNECTION_AGE: Duration = Duration::from_hours(1);

/// How far a stop has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    Running,
    /// Still serving, but no longer ready for more.
    Draining,
    /// Finishing what is in progress.
    Stopping,
}

/// Turns to `Draining` on SIGTERM or Ctrl-C.
pub fn stop_signal() -> Result<watch::Receiver<Stage>, String> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| format!("no signals: {error}"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| format!("no signals: {error}"))?;
    let (send, receive) = watch::channel(Stage::Running);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("asked to stop");
        send.send_replace(Stage::Draining);
        // Kept open: a closed channel would say nothing about the stage.
        std::future::pending::<()>().await;
    });
    Ok(receive)
}

/// Resolves when the process is asked to stop.
pub async fn asked_to_stop(mut stop: watch::Receiver<Stage>) {
    // An error means that the sender is gone, and with it the process.
    let _ = stop.wait_for(|stage| *stage >= Stage::Draining).await;
}

/// Serves a service on its configured addresses until `stop` says so.
pub async fn serve(
    service: Definition,
    runtime: Runtime,
    settings: &Settings,
    stop: watch::Receiver<Stage>,
) -> Result<(), String> {
    let listener = bind(settings.listen).await?;
    let operators = bind(settings.metrics_listen).await?;
    tracing::info!(service = service.name, listen = %settings.listen, "serving");
    let db = runtime.db.clone();
    let port = operators_port(settings);
    tokio::spawn(serve_operators(operators, port, stop.clone(), move || ready(db.clone())));
    let working = Workers::start(&runtime.db, workers(service, &runtime), settings.timing());
    tokio::spawn(backlog::watch(runtime.db.clone(), working.is_first()));
    let routes = routes(service, &runtime);
    // Both end in the second stage of a stop, at the same time.
    let resting = async {
        asked_to_stop(stop.clone()).await;
        tokio::time::sleep(settings.drain()).await;
        working.stop(settings.grace()).await;
        Ok(())
    };
    tokio::try_join!(
        serve_grpc(listener, routes, (&runtime.tokens, &runtime.clock, &runtime.tls), settings, stop.clone()),
        (service.serve_besides)(runtime.clone(), stop.clone()),
        resting
    )?;
    runtime.db.close().await;
    tracing::info!(service = service.name, "stopped");
    Ok(())
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
    (tokens, clock, tls): (&Tokens, &Clock, &Tls),
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
    let mut port = Port::new("grpc", settings, settings.connections.max_connections, 4);
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
    Port::new("operators", settings, MAX_OPERATORS.min(settings.connections.max_connections), 16)
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
