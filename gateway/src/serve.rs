//! The life of the gateway from start to stop.

use chassis::server::{self, Stage};
use chassis::{Clock, Db, Runtime, peer::Peers, token::Tokens};
use proto::accounts::account_service_server::AccountServiceServer;
use sqlx::migrate::Migrator;
use tokio::sync::watch;
use tonic::service::RoutesBuilder;

use crate::accounts::Accounts;
use crate::settings::Settings;

/// The schema of the gateway, and its name among the processes.
pub const NAME: &str = "gateway";

/// The gateway's own tables.
pub static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

/// What the gateway works with. Must be called inside the async runtime.
pub fn runtime(settings: &Settings, clock: Clock) -> Result<Runtime, String> {
    let mesh = &settings.mesh;
    let db = Db::open(&mesh.database_url, NAME, mesh.database_pool, clock.clone(), Vec::new()).map_err(
        |_| "DATABASE_URL is not usable: it must look like postgres://user:password@host:port/database",
    )?;
    let peers = Peers::new(&settings.peers, &mesh.tls)?;
    Ok(Runtime { db, clock, tokens: Tokens::new(&mesh.context_secret), peers })
}

pub async fn migrate(settings: &Settings) -> Result<(), String> {
    chassis::db::migrate(&settings.mesh.database_url, NAME, &MIGRATIONS).await.map_err(|error| {
        format!("the schema {NAME} could not be brought up to date: {}", chassis::service::chain(&error))
    })?;
    tracing::info!(schema = NAME, "schema is up to date");
    Ok(())
}

/// Serves until told to stop.
pub async fn serve(settings: Settings) -> Result<(), String> {
    settings.mesh.check()?;
    let runtime = runtime(&settings, Clock::system())?;
    let stop = server::stop_signal()?;
    let operators = server::bind(settings.mesh.metrics_listen).await?;
    let db = runtime.db.clone();
    tokio::spawn(server::serve_operators(operators, move || {
        let db = db.clone();
        async move { db.ping().await.map_err(|error| error.to_string()) }
    }));
    let mesh = server::bind(settings.mesh_listen).await?;
    tracing::info!(mesh = %settings.mesh_listen, "serving");
    serve_mesh(mesh, &runtime, &settings, stop).await?;
    runtime.db.close().await;
    tracing::info!("stopped");
    Ok(())
}

/// Serves the gRPC of internal teams.
pub async fn serve_mesh(
    listener: tokio::net::TcpListener,
    runtime: &Runtime,
    settings: &Settings,
    stop: watch::Receiver<Stage>,
) -> Result<(), String> {
    let mut routes = RoutesBuilder::default();
    routes.add_service(AccountServiceServer::new(Accounts::new(runtime.clone())));
    server::serve_grpc(listener, routes, runtime, &settings.mesh, stop).await
}
