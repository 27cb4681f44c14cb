//! For end-to-end tests: a gateway in the test's own process, on a free port, and a client that speaks to it as an
//! integration would.

#![expect(clippy::expect_used, reason = "a test that cannot start its gateway has to stop")]

mod api;
mod documented;

pub use api::{Answer, Api};

use std::net::SocketAddr;
use std::sync::Arc;

use chassis_base::{Account, Clock};
use chassis_service::stage::Stage;
use chassis_testing::{TestDatabase, environment, secret, service_database};
use chassis_transcode::records::RecordKinds;
use chassis_work::worker::Workers;
use clap::Parser;
use prost_reflect::DescriptorPool;
use proto::accounts::account_service_server::AccountService;
use proto::accounts::{CreateAccountRequest, CreateKeyRequest};
use tokio::sync::watch;

use crate::accounts::Accounts;
use crate::http::{App, OperationTable, router};
use crate::runtime::NAME;
use crate::settings::Settings;

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    settings: Settings,
}

/// A gateway that runs until the value is dropped.
pub struct TestGateway {
    pub address: SocketAddr,
    pub app: Arc<App>,
    stop: watch::Sender<Stage>,
}

impl TestGateway {
    /// Starts a gateway. `peers` are `name=url`; `flags` are more settings.
    pub async fn start(database: &TestDatabase, clock: &Clock, peers: &[String], flags: &[&str]) -> Self {
        Self::start_serving(proto::policy::pool(), database, clock, peers, flags).await
    }

    /// Starts a gateway for another contract than the product's.
    pub async fn start_serving(
        contract: &DescriptorPool,
        database: &TestDatabase,
        clock: &Clock,
        peers: &[String],
        flags: &[&str],
    ) -> Self {
        let operations =
            chassis_transcode::contract::operations(contract).expect("a contract that can be served");
        let records = RecordKinds::new(contract, &operations).expect("records that can be read");
        let peers = peers.join(",");
        let way = service_database(database.url(), NAME).flags();
        let mut base = vec!["test", &way[0], &way[1], "--context-secret", secret()];
        if !peers.is_empty() {
            base.extend(["--peers", &peers]);
        }
        let settings = Flags::parse_from(base.iter().chain(environment(flags)).chain(flags)).settings;
        let (stop, stopped) = watch::channel(Stage::Running);
        let operations = OperationTable::new(operations);
        let app = crate::serve::app(&settings, operations, records, clock.clone(), stopped.clone())
            .expect("usable settings");
        let app = Arc::new(app);
        let router = router(Arc::clone(&app));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound port");
        let port = crate::serve::public_port(&settings);
        tokio::spawn(chassis_service::connections::serve(listener, router, port, stopped));
        Self { address, app, stop }
    }

    /// Starts the gateway's background work, which ends when the value is dropped.
    pub fn working(&self) -> Workers {
        let workers = crate::keys::worker::workers(&self.app.runtime);
        Workers::start(&self.app.runtime.db, workers, chassis_testing::timing())
    }

    /// Begins a stop.
    pub fn drain(&self) {
        self.stop.send_replace(Stage::Draining);
    }

    /// A new account of this name, provisioned in every peer.
    pub async fn account(&self, name: &str) -> Account {
        let input = CreateAccountRequest { name: name.to_owned(), ..CreateAccountRequest::default() };
        let request = self.app.runtime.local_request("test", input);
        let created = self.accounts().create(request).await.expect("a new account");
        assert!(created.unprovisioned.is_empty(), "every peer has the account");
        self.accounts().get(name).await.expect("the account").account().expect("usable settings")
    }

    /// A client with a new key of the account.
    pub async fn api(&self, account: &Account, scopes: &[&str]) -> Api {
        let input = CreateKeyRequest {
            account: account.id.to_string(),
            name: "Test".to_owned(),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            ..CreateKeyRequest::default()
        };
        self.api_with_key(input).await
    }

    /// A client with a new key like this.
    pub async fn api_with_key(&self, input: CreateKeyRequest) -> Api {
        let request = self.app.runtime.local_request("test", input);
        let created = self.accounts().create_key(request).await.expect("a new key");
        self.api_with(&created.into_inner().secret)
    }

    fn accounts(&self) -> Accounts {
        Accounts::new(self.app.runtime.clone())
    }

    /// A client with this key; without a key when it is empty.
    pub fn api_with(&self, key: &str) -> Api {
        Api::new(self.address, key)
    }
}

impl Drop for TestGateway {
    fn drop(&mut self) {
        self.stop.send_replace(Stage::Draining);
    }
}
