//! Services that run inside the test's process on free ports, and calls to them.

#![expect(clippy::expect_used, reason = "a test that cannot start its service has to stop")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use chassis_base::{Account, Clock};
use chassis_rpc::call::{IDEMPOTENCY_KEY, REQUEST_ID};
use chassis_rpc::token::{self, Tokens};
use chassis_service::config::{ServiceSettings, Settings};
use chassis_service::server::{Authentication, serve_grpc};
use chassis_service::stage::Stage;
use chassis_service::{Runtime, Service, assembly};
use chassis_work::worker::{Timing, Workers};
use clap::{CommandFactory, FromArgMatches, Parser};
use tokio::sync::watch;
use tonic::Request;
use tonic::metadata::MetadataValue;
use tonic::service::RoutesBuilder;
use tonic::transport::{Channel, Endpoint};

use super::pooler::service_database;

/// The secret that signs context tokens in tests.
pub fn secret() -> &'static str {
    "a secret for tests only with enough characters"
}

#[derive(Parser)]
struct Both {
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    own: ServiceSettings,
}

/// The settings from these flags, for parts that are tested without a service.
pub fn service_settings<F: AsRef<str>>(flags: &[F]) -> ServiceSettings {
    let flags = flags.iter().map(AsRef::as_ref);
    Both::parse_from(std::iter::once("test").chain(flags)).own
}

/// A service that runs until the value is dropped.
pub struct Started {
    pub address: SocketAddr,
    pub runtime: Runtime,
    stop: watch::Sender<Stage>,
    workers: Option<Workers>,
}

impl Started {
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn channel(&self) -> Channel {
        Endpoint::from_shared(self.url()).expect("an address").connect_lazy()
    }

    /// Stops the background work gracefully. Dropping the value ends it as a kill does: leases are not released.
    pub async fn stop_working(&mut self) {
        if let Some(workers) = self.workers.take() {
            workers.stop(Duration::from_secs(10)).await;
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.stop.send_replace(Stage::Draining);
    }
}

/// Starts a service on a free port with default settings.
pub async fn start<S: Service>(database_url: &str, clock: &Clock) -> Started {
    start_with::<S>(database_url, clock, &[]).await
}

/// Starts a service with more settings, as flags.
pub async fn start_with<S: Service>(database_url: &str, clock: &Clock, flags: &[&str]) -> Started {
    launch::<S>(database_url, clock, flags).await.0
}

async fn launch<S: Service>(database_url: &str, clock: &Clock, flags: &[&str]) -> (Started, Arc<S>) {
    let database = service_database(database_url, S::NAME).flags();
    let base = ["test", "--context-secret", secret(), "--grace-ms", "0"];
    let base = base.iter().copied().chain(database.iter().map(String::as_str));
    let base = base.chain(environment(flags).iter().chain(flags).copied());
    let options = S::options(Both::command()).get_matches_from(base);
    let both = Both::from_arg_matches(&options).expect("usable settings");
    let files = assembly::open_files::<S>(&both.own).expect("usable settings");
    let runtime = Runtime::new(S::NAME, &both.settings, &both.own, options, clock.clone(), files);
    let runtime = runtime.expect("usable settings");
    let service = Arc::new(S::new(&runtime).await.expect("usable settings"));
    let routes = assembly::routes(&service, &runtime);
    (serve(routes, runtime, both.settings).await, service)
}

async fn serve(routes: RoutesBuilder, runtime: Runtime, settings: Settings) -> Started {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound port");
    let (stop, stopped) = watch::channel(Stage::Running);
    let serving = runtime.clone();
    tokio::spawn(async move {
        let authentication =
            Authentication { tokens: &serving.tokens, clock: &serving.clock, tls: &serving.tls };
        serve_grpc(listener, routes, authentication, &settings, stopped).await.expect("serving");
    });
    Started { address, runtime, stop, workers: None }
}

/// The flags for the development environment, unless a test sets the environment.
pub fn environment(flags: &[impl AsRef<str>]) -> &'static [&'static str] {
    let is_set = flags.iter().any(|flag| flag.as_ref() == "--environment");
    if is_set { &[] } else { &["--environment", "development"] }
}

/// Starts a service with its background work. Leases and delays follow the test's clock; polling for work uses real
/// time and a short interval.
pub async fn start_working<S: Service>(database_url: &str, clock: &Clock, flags: &[&str]) -> Started {
    start_working_service::<S>(database_url, clock, flags).await.0
}

/// Like [`start_working`], and returns the service value too, for tests of protocols other than gRPC.
pub async fn start_working_service<S: Service>(
    database_url: &str,
    clock: &Clock,
    flags: &[&str],
) -> (Started, Arc<S>) {
    let (mut started, service) = launch::<S>(database_url, clock, flags).await;
    let workers = assembly::workers(&service, &started.runtime);
    started.workers = Some(Workers::start(&started.runtime.db, workers, timing()));
    (started, service)
}

/// The timing of background work in tests. Sweeps are frequent, for tests that write to the database directly.
pub fn timing() -> Timing {
    Timing { poll: Duration::from_millis(10), sweep: Duration::from_secs(2), ..Timing::default() }
}

/// Makes requests on behalf of an account.
#[derive(Clone)]
pub struct TestCaller {
    pub account: Account,
    pub clock: Clock,
    pub scopes: Vec<String>,
}

impl TestCaller {
    /// A process of the mesh, which may call every rpc.
    pub fn mesh(account: &Account, clock: &Clock) -> Self {
        let scopes = vec![token::MESH_SCOPE.to_owned()];
        Self { account: account.clone(), clock: clock.clone(), scopes }
    }

    /// The same caller with other scopes.
    #[must_use]
    pub fn with_scopes(&self, scopes: &[&str]) -> Self {
        Self { scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(), ..self.clone() }
    }

    pub fn request<T>(&self, message: T) -> Request<T> {
        self.request_at(0, message)
    }

    /// A request that a chain of `depth` events led to.
    pub fn request_at<T>(&self, depth: u32, message: T) -> Request<T> {
        let (tokens, now) = (Tokens::new(secret()), self.clock.now());
        let minter = tokens.to_self().at_depth(depth);
        let token = minter.mint(&self.account, "test", "Test", &self.scopes, now);
        let mut request = Request::new(message);
        let metadata = request.metadata_mut();
        metadata.insert(token::HEADER, MetadataValue::try_from(token).expect("ASCII"));
        metadata.insert(REQUEST_ID, MetadataValue::from_static("test"));
        request
    }

    pub fn keyed<T>(&self, key: &str, message: T) -> Request<T> {
        let mut request = self.request(message);
        request.metadata_mut().insert(IDEMPOTENCY_KEY, MetadataValue::try_from(key).expect("ASCII"));
        request
    }
}
