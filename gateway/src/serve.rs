//! The life of the gateway from start to stop: builds its parts, binds its ports, and stops in order.

use std::sync::Arc;

use chassis_base::Clock;
use chassis_base::paging::MAX_SIZE;
use chassis_data::log::{self, snapshot::SharedRecords};
use chassis_rpc::mesh::MeshLayer;
use chassis_service::connections::{self, Port};
use chassis_service::server::{self, Authentication};
use chassis_service::stage::{self, Stage};
use chassis_transcode::contract::{self, Operation};
use chassis_transcode::records::RecordKinds;
use chassis_work::worker::{Workers, recovery_worker};
use proto::accounts::account_service_server::AccountServiceServer;
use proto::accounts::credential_service_server::CredentialServiceServer;
use proto::accounts::token_service_server::TokenServiceServer;
use proto::gateway::Limits;
use proto::gateway::key_service_server::KeyServiceServer;
use proto::gateway::threshold_service_server::ThresholdServiceServer;
use tokio::sync::{Semaphore, watch};
use tonic::service::RoutesBuilder;

use crate::accounts::Accounts;
use crate::credentials::Credentials;
use crate::http::{
    App, ByteBudgets, ConcurrencyLimit, Cors, MAX_BODY, OperationTable, OwnServices, Proxies, Upstreams,
    router,
};
use crate::keys::rpc::Keys;
use crate::keys::{Authenticator, TokenCache, worker};
use crate::limits;
use crate::readiness::Readiness;
use crate::runtime::Runtime;
use crate::settings::Settings;
use crate::thresholds::Thresholds;

/// Requests in progress on one HTTP/2 connection.
const MAX_CONCURRENT_STREAMS: u32 = 256;

/// The state of the HTTP handlers. Spawns the tasks that keep it current. Must be called inside the async runtime.
pub fn app(
    settings: &Settings,
    operations: OperationTable,
    records: RecordKinds,
    clock: Clock,
    stop: watch::Receiver<Stage>,
) -> Result<App, String> {
    let runtime = Runtime::open(settings, clock)?;
    let keys = Authenticator::new(runtime.db.clone(), runtime.tokens.clone());
    tokio::spawn(keys.clone().record_uses_periodically());
    let limits = Arc::new(limits::Limits::new(settings));
    tokio::spawn(Arc::clone(&limits).clean_up_periodically());
    let upstreams = Upstreams::new(&runtime.peers);
    let max_in_flight = settings.mesh.max_in_flight;
    Ok(App {
        own: own_services(settings, &runtime),
        readiness: Readiness::new(runtime.clone()),
        runtime,
        keys,
        limits,
        concurrency: ConcurrencyLimit::new(max_in_flight, upstreams.count()),
        waits: ConcurrencyLimit::new(max_in_flight, 1),
        upstreams,
        operations,
        records,
        deadline: settings.mesh.deadline(),
        admissions: Semaphore::new(max_in_flight),
        budgets: ByteBudgets::new(settings.max_bytes_in, settings.max_bytes_out),
        cors: Cors::new(&settings.cors_origins)?,
        public_tokens: TokenCache::default(),
        proxies: Proxies::new(settings),
        stop,
    })
}

/// The rpcs of the contract that the gateway answers itself.
fn own_services(settings: &Settings, runtime: &Runtime) -> OwnServices {
    let mesh = &settings.mesh;
    let limits = Limits {
        requests_per_minute: settings.rate_per_minute.into(),
        burst: settings.rate_burst.into(),
        body_bytes: i64::try_from(MAX_BODY).unwrap_or(i64::MAX),
        per_page: MAX_SIZE,
    };
    let mut routes = RoutesBuilder::default();
    routes.add_service(KeyServiceServer::new(Keys { runtime: runtime.clone(), limits }));
    routes.add_service(ThresholdServiceServer::new(Thresholds { runtime: runtime.clone() }));
    let (tokens, clock) = (runtime.tokens.clone(), runtime.clock.clone());
    // Nobody else can call them, so nobody has to present a certificate.
    let layer = MeshLayer::new(tokens, clock, mesh.deadline(), mesh.max_in_flight, None);
    OwnServices::new(routes, &layer)
}

/// What the gateway serves. The descriptor is not kept: requests need only what is read from it here.
fn read_contract() -> Result<(Vec<Operation>, RecordKinds), contract::Error> {
    proto::policy::read(|pool| {
        let operations = contract::operations(pool)?;
        let records = RecordKinds::new(pool, &operations)?;
        Ok((operations, records))
    })
}

/// Serves until a signal stops the process.
pub async fn serve(settings: Settings) -> Result<(), String> {
    let mesh = &settings.mesh;
    mesh.check()?;
    connections::raise_file_limit();
    let (operations, records) = read_contract().map_err(|error| error.to_string())?;
    let stop = stage::stop_signal()?;
    let operations = OperationTable::new(operations);
    let app = Arc::new(app(&settings, operations, records, Clock::system(), stop.clone())?);
    app.runtime.db.check().await?;
    let operators = server::bind(mesh.metrics_listen).await?;
    let readiness = app.readiness.clone();
    tokio::spawn(server::serve_operators(operators, server::operators_port(mesh), stop.clone(), move || {
        let readiness = readiness.clone();
        async move { readiness.check().await }
    }));
    let internal = server::bind(settings.mesh_listen).await?;
    let public = server::bind(mesh.listen).await?;
    tracing::info!(listen = %mesh.listen, mesh = %settings.mesh_listen, operations = app.operations.len(), "serving");
    let router = router(Arc::clone(&app));
    let mut workers = worker::workers(&app.runtime);
    workers.push(recovery_worker());
    let working = Workers::start(&app.runtime.db, workers, mesh.workers.timing());
    let ((), internal) = tokio::join!(
        connections::serve(public, router, public_port(&settings), stop.clone()),
        serve_mesh(internal, &app.runtime, &settings, stop),
    );
    internal?;
    // The order of the shutdown: requests end, then background work; then the last uses of keys are written, and
    // only then the pool closes.
    working.stop(mesh.stop.grace()).await;
    app.keys
        .record_uses()
        .await
        .map_err(|error| format!("the last uses of keys are not recorded: {error}"))?;
    app.runtime.db.close().await;
    tracing::info!("stopped");
    Ok(())
}

/// The port of the API. Behind a proxy all connections may come from one address, so there is no limit per address.
pub fn public_port(settings: &Settings) -> Port {
    let per_address = usize::try_from(settings.max_connections_per_address).unwrap_or(usize::MAX);
    let mut port = Port::new(
        "http",
        &settings.mesh.connections,
        &settings.mesh.stop,
        settings.mesh.connections.max_connections,
        2,
    );
    port.max_from_one = Some(per_address).filter(|max| *max > 0 && settings.proxies() == 0);
    port.http.http2().max_concurrent_streams(MAX_CONCURRENT_STREAMS);
    port
}

/// Serves the gRPC of internal teams.
pub async fn serve_mesh(
    listener: tokio::net::TcpListener,
    runtime: &Runtime,
    settings: &Settings,
    stop: watch::Receiver<Stage>,
) -> Result<(), String> {
    let mut routes = RoutesBuilder::default();
    routes.add_service(log::audit_server(runtime.db.clone()));
    routes.add_service(log::server(runtime.db.clone(), SharedRecords::none()));
    routes.add_service(AccountServiceServer::new(Accounts::new(runtime.clone())));
    let credentials = Credentials::new(runtime.clone());
    routes.add_service(CredentialServiceServer::new(credentials.clone()));
    routes.add_service(TokenServiceServer::new(credentials));
    let authentication = Authentication { tokens: &runtime.tokens, clock: &runtime.clock, tls: &runtime.tls };
    server::serve_grpc(listener, routes, authentication, &settings.mesh, stop).await
}
