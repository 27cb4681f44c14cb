//! A mesh that does more than answer: its services deliver events, and automation runs flows.

use chassis_base::Clock;
use chassis_testing::{Started, TestDatabase};
use gateway::testing::TestGateway;
use svc_automation::Automation;
use svc_billing::Billing;
use svc_relations::Relations;
use svc_work::Work;
use tempfile::TempDir;

use crate::support::database;

/// Making a PDF takes long without optimisation, and longer beside other tests.
const DEADLINE: [&str; 2] = ["--deadline-ms", "120000"];

pub(crate) struct WorkingMesh {
    pub database: TestDatabase,
    pub clock: Clock,
    pub gateway: TestGateway,
    pub billing: Started,
    pub automation: Started,
    /// Alive as long as the rest.
    _others: (Vec<Started>, TempDir),
}

impl WorkingMesh {
    /// `flags` are settings of every service.
    pub(crate) async fn start(flags: &[&str]) -> Self {
        let (database, clock, files) =
            (database().await, chassis_testing::clock(), tempfile::tempdir().unwrap());
        let folder = files.path().to_str().unwrap();
        let common = [&["--files-dir", folder, "--mail-dir", folder][..], &DEADLINE, flags].concat();
        // Receives the events; another one, which knows all services, does what follows from them.
        let receiver = chassis_testing::start_with::<Automation>(database.url(), &clock, &common).await;
        let listener = format!("automation={}", receiver.url());
        let flags = [&common[..], &["--listeners", &listener]].concat();
        let relations = chassis_testing::start_working::<Relations>(database.url(), &clock, &flags).await;
        let mut peers = format!("relations={}", relations.url());
        let flags = [&common[..], &["--listeners", &listener, "--peers", &peers]].concat();
        let billing = chassis_testing::start_working::<Billing>(database.url(), &clock, &flags).await;
        peers = format!("{peers},billing={}", billing.url());
        let flags = [&common[..], &["--peers", &peers]].concat();
        let work = chassis_testing::start_with::<Work>(database.url(), &clock, &flags).await;
        peers = format!("{peers},work={}", work.url());
        let flags = [&common[..], &["--peers", &peers, "--allow-private-networks"]].concat();
        let automation = chassis_testing::start_working::<Automation>(database.url(), &clock, &flags).await;
        peers = format!("{peers},automation={}", automation.url());
        let peers: Vec<String> = peers.split(',').map(str::to_owned).collect();
        // Who waits asks often.
        let flags = [&["--rate-per-minute", "0"][..], &DEADLINE].concat();
        let gateway = TestGateway::start(&database, &clock, &peers, &flags).await;
        Self {
            database,
            clock,
            gateway,
            billing,
            automation,
            _others: (vec![receiver, relations, work], files),
        }
    }

    pub(crate) async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&mut self.database.connect().await).await.unwrap()
    }
}
