use chassis_base::{Account, Clock};
use chassis_service::Service;
use chassis_testing::{Started, TestDatabase};
use gateway::testing::{Api, TestGateway};
use svc_automation::Automation;
use svc_billing::Billing;
use svc_crm::Crm;
use svc_relations::Relations;
use svc_support::Support;
use svc_work::Work;
use tempfile::TempDir;
use tonic::transport::Channel;

/// A gateway and its services around one database of their own.
pub(crate) struct Mesh {
    pub database: TestDatabase,
    pub clock: Clock,
    pub gateway: TestGateway,
    peers: Vec<String>,
    services: Vec<Started>,
    /// Answers the other services; the relations of the gateway is another one, which calls them.
    _looked_up: Started,
    _files: TempDir,
}

/// What most tests need: everything that relations asks for.
pub(crate) const RELATIONS: &[&str] = &["relations.read", "relations.write"];

/// The schemas of all services and of the gateway.
pub(crate) async fn database() -> TestDatabase {
    TestDatabase::new(&[
        ("gateway", &gateway::MIGRATIONS),
        ("relations", Relations::migrations()),
        ("automation", Automation::migrations()),
        ("billing", Billing::migrations()),
        ("crm", Crm::migrations()),
        ("work", Work::migrations()),
        ("support", Support::migrations()),
    ])
    .await
}

impl Mesh {
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    pub(crate) async fn start_with(flags: &[&str]) -> Self {
        Self::start_at(chassis_testing::clock(), flags).await
    }

    pub(crate) async fn start_at(clock: Clock, flags: &[&str]) -> Self {
        Self::around(database().await, clock, flags).await
    }

    pub(crate) async fn around(database: TestDatabase, clock: Clock, flags: &[&str]) -> Self {
        let files = tempfile::tempdir().unwrap();
        let folder = files.path().to_str().unwrap();
        let alone = ["--mail-dir", folder];
        let looked_up = chassis_testing::start_with::<Relations>(database.url(), &clock, &alone).await;
        let automation = chassis_testing::start_with::<Automation>(database.url(), &clock, &alone).await;
        let relations_peer = format!("relations={}", looked_up.url());
        let own_flags = ["--mail-dir", folder, "--files-dir", folder, "--peers", &relations_peer];
        let billing = chassis_testing::start_with::<Billing>(database.url(), &clock, &own_flags).await;
        let support = chassis_testing::start_with::<Support>(database.url(), &clock, &own_flags).await;
        let crm = chassis_testing::start_with::<Crm>(database.url(), &clock, &own_flags).await;
        let mut peers =
            vec![relations_peer, format!("billing={}", billing.url()), format!("crm={}", crm.url())];
        let known = peers.join(",");
        let own_flags = ["--mail-dir", folder, "--files-dir", folder, "--peers", &known];
        let work = chassis_testing::start_with::<Work>(database.url(), &clock, &own_flags).await;
        peers.extend([format!("work={}", work.url()), format!("support={}", support.url())]);
        let known = peers[1..].join(",");
        let own_flags = ["--mail-dir", folder, "--peers", &known];
        let relations = chassis_testing::start_with::<Relations>(database.url(), &clock, &own_flags).await;
        peers[0] = format!("relations={}", relations.url());
        peers.push(format!("automation={}", automation.url()));
        let gateway = TestGateway::start(&database, &clock, &peers, flags).await;
        let services = vec![relations, automation, billing, crm, work, support];
        Self { database, clock, gateway, peers, services, _looked_up: looked_up, _files: files }
    }

    pub(crate) fn relations_address(&self) -> std::net::SocketAddr {
        self.services[0].address
    }

    /// The services, as a gateway is configured with them.
    pub(crate) fn peers(&self) -> &[String] {
        &self.peers
    }

    /// All services.
    pub(crate) fn channels(&self) -> impl Iterator<Item = Channel> {
        self.services.iter().map(Started::channel)
    }

    /// For what internal teams do with relations over gRPC.
    pub(crate) fn relations(&self) -> Channel {
        self.services[0].channel()
    }

    pub(crate) fn crm(&self) -> Channel {
        self.services[3].channel()
    }

    /// For what internal teams do with work over gRPC.
    pub(crate) fn work(&self) -> Channel {
        self.services[4].channel()
    }

    /// Another replica of the gateway.
    pub(crate) async fn another_gateway(&self) -> TestGateway {
        TestGateway::start(&self.database, &self.clock, &self.peers, &[]).await
    }

    /// A client for a new account.
    pub(crate) async fn api(&self, scopes: &[&str]) -> Api {
        self.api_of_new_account(scopes).await.0
    }

    pub(crate) async fn api_of_new_account(&self, scopes: &[&str]) -> (Api, Account) {
        let account = self.gateway.account(&format!("Account {}", self.clock.id())).await;
        (self.gateway.api(&account, scopes).await, account)
    }
}
