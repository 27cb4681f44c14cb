//! Two replicas of automation as real processes: which of them works for an account, and what it counts.

use std::net::SocketAddr;

use chassis_base::Account;
use chassis_testing::{Process, TestDatabase, eventually, quiet_port};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use uuid::Uuid;

pub(crate) struct Replica {
    pub process: Process,
    /// Its name in the leases; a new one after each start.
    owner: Uuid,
    metrics: SocketAddr,
}

pub(crate) struct Replicas<'a> {
    database: &'a TestDatabase,
    pub all: Vec<Replica>,
}

impl<'a> Replicas<'a> {
    /// Two of them, both at work.
    pub(crate) async fn start(database: &'a TestDatabase, flags: &[&str]) -> Self {
        let mut replicas = Self { database, all: Vec::new() };
        for _ in 0..2 {
            let metrics = quiet_port();
            let address = metrics.to_string();
            let flags: Vec<&str> = flags.iter().copied().chain(["--metrics-listen", &address]).collect();
            // Nobody calls them: requests go to a replica that is not killed.
            let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
            let before = replicas.owners().await;
            let process = Process::start(env!("CARGO_BIN_EXE_svc-automation"), anywhere, &flags);
            let owner = replicas.new_owner(&before).await;
            replicas.all.push(Replica { process, owner, metrics });
        }
        replicas
    }

    /// Waits for one that was not there before.
    async fn new_owner(&self, before: &[Uuid]) -> Uuid {
        let mut found = None;
        eventually("a replica is at work", async || {
            found = self.owners().await.into_iter().find(|owner| !before.contains(owner));
            found.is_some()
        })
        .await;
        found.unwrap()
    }

    async fn owners(&self) -> Vec<Uuid> {
        let sql = "select owner from automation.replica where worker = 'runs'";
        sqlx::query_scalar(sql).fetch_all(&mut self.database.connect().await).await.unwrap()
    }

    /// The one that works for the account.
    pub(crate) async fn at_work_for(&self, account: &Account) -> usize {
        let mut found = None;
        eventually("somebody works for the account", async || {
            let sql = "select owner from automation.lease
                       where worker = 'runs' and partition = $1 and until > clock_timestamp()";
            let owner: Option<Uuid> = sqlx::query_scalar(sql)
                .bind(i16::try_from(account.id.partition()).unwrap())
                .fetch_optional(&mut self.database.connect().await)
                .await
                .unwrap();
            found = self.all.iter().position(|replica| Some(replica.owner) == owner);
            found.is_some()
        })
        .await;
        found.unwrap()
    }

    /// Starts one again that was killed.
    pub(crate) async fn restart(&mut self, index: usize) {
        let before = self.owners().await;
        self.all[index].process.kill_and_restart();
        self.all[index].owner = self.new_owner(&before).await;
    }

    /// How many jobs of the replica ended because another one had taken them over.
    pub(crate) async fn lost(&self, index: usize) -> f64 {
        let mut stream = TcpStream::connect(self.all[index].metrics).await.unwrap();
        stream.write_all(b"GET /metrics HTTP/1.0\r\nhost: test\r\n\r\n").await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        let labels = ["worker_jobs_total{", "worker=\"runs\"", "outcome=\"lost\""];
        let lines = text.lines().filter(|line| labels.iter().all(|part| line.contains(part)));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    }
}
