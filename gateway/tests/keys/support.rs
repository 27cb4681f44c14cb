//! A gateway's database, its mesh port, and shorthands.

use std::sync::Arc;

use chassis_base::Clock;
use chassis_service::Service;
use chassis_service::stage::Stage;
use chassis_testing::{TestCaller, TestDatabase};
use clap::Parser;
use gateway::keys::{Authenticator, Caller};
use gateway::runtime::Runtime;
use gateway::{MIGRATIONS, Settings};
use proto::accounts::account_service_client::AccountServiceClient;
use proto::accounts::{Account, CreateAccountRequest, CreateKeyRequest, CreateKeyResponse, RevokeKeyRequest};
use svc_crm::Crm;
use svc_work::Work;
use tokio::sync::watch;
use tonic::transport::{Channel, Endpoint};

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    settings: Settings,
}

pub(crate) async fn database() -> TestDatabase {
    TestDatabase::new(&[
        (gateway::NAME, &MIGRATIONS),
        (Work::NAME, Work::migrations()),
        (Crm::NAME, Crm::migrations()),
    ])
    .await
}

/// A gateway with its mesh port, at a moment that stands still.
pub(crate) struct World {
    pub runtime: Runtime,
    pub clock: Clock,
    pub client: AccountServiceClient<Channel>,
    /// The way to the mesh port, for its other services.
    pub channel: Channel,
    pub database: TestDatabase,
    _stop: watch::Sender<Stage>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with_peers(database().await, "").await
    }

    pub(crate) async fn with_peers(database: TestDatabase, peers: &str) -> Self {
        let clock = chassis_testing::clock();
        let (runtime, settings) = runtime(&database, &clock, peers);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(Stage::Running);
        let serving = runtime.clone();
        tokio::spawn(async move {
            gateway::serve::serve_mesh(listener, &serving, &settings, stopped).await.unwrap();
        });
        let channel = Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy();
        let client = AccountServiceClient::new(channel.clone());
        Self { runtime, clock, client, channel, database, _stop: stop }
    }

    /// What another replica on the same database works with.
    pub(crate) fn replica(&self) -> Runtime {
        runtime(&self.database, &self.clock, "").0
    }

    pub(crate) fn authenticator(&self) -> Authenticator {
        Authenticator::new(self.runtime.db.clone(), self.runtime.tokens.clone())
    }

    pub(crate) fn mesh(&self) -> TestCaller {
        TestCaller::mesh(&chassis_testing::account(), &self.clock)
    }

    pub(crate) async fn account(&self, name: &str) -> Account {
        let input = CreateAccountRequest { name: name.to_owned(), ..CreateAccountRequest::default() };
        let response = self.client.clone().create_account(self.mesh().request(input)).await.unwrap();
        response.into_inner().account.unwrap()
    }

    pub(crate) async fn key(&self, input: CreateKeyRequest) -> CreateKeyResponse {
        self.client.clone().create_key(self.mesh().request(input)).await.unwrap().into_inner()
    }

    pub(crate) async fn revoke(&self, key: &str) {
        let input = RevokeKeyRequest { key: key.to_owned() };
        self.client.clone().revoke_key(self.mesh().request(input)).await.unwrap();
    }

    /// An account `Bakery` with a key for relations, and the caller it stands for.
    pub(crate) async fn caller(&self) -> (String, Arc<Caller>) {
        self.caller_of("Bakery").await
    }

    /// The same for an account of another name.
    pub(crate) async fn caller_of(&self, account: &str) -> (String, Arc<Caller>) {
        self.account(account).await;
        let key = self.key(key_for(account)).await.secret;
        let caller = self.authenticator().authenticate(&key).await.unwrap();
        (key, caller)
    }
}

fn runtime(database: &TestDatabase, clock: &Clock, peers: &str) -> (Runtime, Settings) {
    let way = chassis_testing::service_database(database.url(), "gateway").flags();
    let mut flags = vec!["gateway", &way[0], &way[1], "--context-secret", chassis_testing::secret()];
    if !peers.is_empty() {
        flags.extend(["--peers", peers]);
    }
    let settings = Flags::parse_from(flags).settings;
    (Runtime::open(&settings, clock.clone()).unwrap(), settings)
}

pub(crate) fn key_for(account: &str) -> CreateKeyRequest {
    CreateKeyRequest {
        account: account.to_owned(),
        name: "Web shop".to_owned(),
        scopes: vec!["relations.read".to_owned()],
        ..CreateKeyRequest::default()
    }
}
