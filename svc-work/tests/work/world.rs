//! The services of one test: work and a gateway, and those of the others that the test needs. Starting a service costs
//! more than most tests do, so a test names what it needs.

use std::path::Path;
use std::pin::Pin;

use chassis_base::Clock;
use chassis_service::Service;
use chassis_testing::{Started, TestCaller, TestDatabase};
use gateway::testing::TestGateway;
use svc_billing::Billing;
use svc_crm::Crm;
use svc_relations::Relations;
use svc_work::Work;
use tempfile::TempDir;

use crate::support::User;

/// The peers of work at a port that nobody listens on.
const UNREACHABLE_PEERS: &str =
    "relations=http://127.0.0.1:1,billing=http://127.0.0.1:1,crm=http://127.0.0.1:1";
/// Rendering a PDF takes long without optimisation, and longer beside other tests.
const DEADLINE: [&str; 2] = ["--deadline-ms", "120000"];
const SCOPES: [&str; 14] = [
    "projects.read",
    "projects.write",
    "tasks.read",
    "tasks.write",
    "notes.read",
    "notes.write",
    "files.read",
    "files.write",
    "relations.read",
    "relations.write",
    "invoices.read",
    "invoices.write",
    "deals.read",
    "deals.write",
];

/// The services of one test: work and a gateway, and those of the others that the test asked for.
pub(crate) struct World {
    pub database: TestDatabase,
    pub clock: Clock,
    pub work: Started,
    pub gateway: TestGateway,
    files: TempDir,
    relations: Option<Started>,
    crm: Option<Started>,
    others: Vec<Started>,
}

/// Which services a [`World`] has. Starts them when it is awaited: `World::start().with_relations().await`.
#[derive(Default)]
pub(crate) struct WorldBuilder {
    relations: bool,
    crm: bool,
    billing: bool,
    /// Replaces the peers that were started.
    work_peers: Option<&'static str>,
    flags: &'static [&'static str],
}

impl WorldBuilder {
    /// For tests that refer to clients.
    pub(crate) fn with_relations(self) -> Self {
        Self { relations: true, ..self }
    }

    /// For tests that refer to deals. Deals have clients, so this starts relations too.
    pub(crate) fn with_crm(self) -> Self {
        Self { relations: true, crm: true, ..self }
    }

    /// For tests that refer to invoices and quotes. These have clients, so this starts relations too.
    pub(crate) fn with_billing(self) -> Self {
        Self { relations: true, billing: true, ..self }
    }

    /// Work gets addresses of its peers that nobody listens on. The gateway reaches those that were started.
    pub(crate) fn with_unreachable_peers(self) -> Self {
        Self { work_peers: Some(UNREACHABLE_PEERS), ..self }
    }

    /// With more settings of work.
    pub(crate) fn with_flags(self, flags: &'static [&'static str]) -> Self {
        Self { flags, ..self }
    }

    async fn build(self) -> World {
        let mut schemas = vec![(gateway::NAME, &*gateway::MIGRATIONS), ("work", Work::migrations())];
        schemas.extend(self.relations.then(|| ("relations", Relations::migrations())));
        schemas.extend(self.crm.then(|| ("crm", Crm::migrations())));
        schemas.extend(self.billing.then(|| ("billing", Billing::migrations())));
        let database = TestDatabase::new(&schemas).await;
        let clock = chassis_testing::clock();
        let files = tempfile::tempdir().unwrap();
        let files_flags = ["--files-dir", files.path().to_str().unwrap(), DEADLINE[0], DEADLINE[1]];

        let mut peers = Vec::new();
        let mut relations = None;
        if self.relations {
            let started = chassis_testing::start::<Relations>(database.url(), &clock).await;
            peers.push(peer("relations", &started));
            relations = Some(started);
        }
        // Crm and billing know relations only.
        let relations_peer = peers.join(",");
        let mut crm = None;
        if self.crm {
            let flags = ["--peers", &relations_peer];
            let started = chassis_testing::start_with::<Crm>(database.url(), &clock, &flags).await;
            peers.push(peer("crm", &started));
            crm = Some(started);
        }
        let mut others = Vec::new();
        if self.billing {
            let flags = [&["--peers", &relations_peer][..], &files_flags].concat();
            let started = chassis_testing::start_with::<Billing>(database.url(), &clock, &flags).await;
            peers.push(peer("billing", &started));
            others.push(started);
        }

        let work_peers = self.work_peers.map_or_else(|| peers.join(","), str::to_owned);
        let mut flags = [&files_flags[..], self.flags].concat();
        if !work_peers.is_empty() {
            flags.extend(["--peers", &work_peers]);
        }
        let work = chassis_testing::start_with::<Work>(database.url(), &clock, &flags).await;
        peers.push(peer("work", &work));
        let gateway = start_gateway(&database, &clock, &peers).await;
        World { database, clock, work, gateway, files, relations, crm, others }
    }
}

impl IntoFuture for WorldBuilder {
    type Output = World;
    type IntoFuture = Pin<Box<dyn Future<Output = World>>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.build())
    }
}

/// A service as the setting `peers` names it.
fn peer(name: &str, started: &Started) -> String {
    format!("{name}={}", started.url())
}

async fn start_gateway(database: &TestDatabase, clock: &Clock, peers: &[String]) -> TestGateway {
    let flags = [&["--rate-per-minute", "0", "--public-rate-per-minute", "0"][..], &DEADLINE].concat();
    TestGateway::start(database, clock, peers, &flags).await
}

impl World {
    /// Work and a gateway; the builder adds other services.
    pub(crate) fn start() -> WorldBuilder {
        WorldBuilder::default()
    }

    fn relations_peer(&self) -> String {
        peer("relations", self.relations.as_ref().expect("a world with relations"))
    }

    fn crm_url(&self) -> String {
        self.crm.as_ref().expect("a world with crm").url()
    }

    /// Starts the background work of work, which runs until the value is dropped.
    pub(crate) async fn start_worker(&self) -> Started {
        let flags = ["--files-dir", self.files().to_str().unwrap()];
        chassis_testing::start_working::<Work>(self.database.url(), &self.clock, &flags).await
    }

    /// Starts another work with its background work and the peers of its scans, which runs until the value is dropped.
    pub(crate) async fn start_scans(&self) -> Started {
        self.start_scans_with(&self.crm_url()).await
    }

    /// The same with crm at this address.
    pub(crate) async fn start_scans_with(&self, crm: &str) -> Started {
        let peers = format!("{},crm={crm}", self.relations_peer());
        let flags = ["--files-dir", self.files().to_str().unwrap(), "--peers", &peers];
        chassis_testing::start_working::<Work>(self.database.url(), &self.clock, &flags).await
    }

    /// Starts another billing with its background work, which delivers its events to work. The gateway uses it from now
    /// on.
    pub(crate) async fn start_billing_worker(&mut self) {
        let relations = self.relations_peer();
        let listener = format!("work={};file.stored;invoice.deleted;quote.deleted", self.work.url());
        let folder = self.files().to_str().unwrap().to_owned();
        let flags = ["--peers", &relations, "--files-dir", &folder, "--listeners", &listener];
        let flags = [&flags[..], &DEADLINE].concat();
        let billing =
            chassis_testing::start_working::<Billing>(self.database.url(), &self.clock, &flags).await;
        let peers = [relations, peer("billing", &billing), peer("work", &self.work)];
        self.gateway = start_gateway(&self.database, &self.clock, &peers).await;
        // The other one stays: work asks it for invoices and quotes.
        self.others.push(billing);
    }

    /// Starts another crm with its background work, which delivers the events of deleted deals to work.
    pub(crate) async fn start_crm_worker(&self) -> Started {
        let relations = self.relations_peer();
        let listener = format!("work={};deal.deleted", self.work.url());
        let flags = ["--peers", &relations, "--listeners", &listener];
        chassis_testing::start_working::<Crm>(self.database.url(), &self.clock, &flags).await
    }

    /// Creates an account, with a key that may do everything here.
    pub(crate) async fn user(&self) -> User {
        let account = self.gateway.account(&format!("Account {}", self.clock.id())).await;
        let api = self.gateway.api(&account, &SCOPES).await;
        let token = TestCaller::mesh(&account, &self.clock);
        User { api, account, token, work: self.work.channel() }
    }

    /// The folder with the files of all services.
    pub(crate) fn files(&self) -> &Path {
        self.files.path()
    }

    /// How many files the object store has.
    pub(crate) fn stored_files(&self) -> usize {
        fn count(folder: &Path) -> usize {
            let entries = std::fs::read_dir(folder).map(|entries| entries.flatten().collect::<Vec<_>>());
            let entry = |entry: &std::fs::DirEntry| match entry.file_type() {
                Ok(kind) if kind.is_dir() => count(&entry.path()),
                _ => 1,
            };
            entries.unwrap_or_default().iter().map(entry).sum()
        }
        count(self.files())
    }
}
