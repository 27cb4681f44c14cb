//! When a process says that it is ready: as long as its database answers, however busy it is.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use chassis_base::Clock;
use chassis_service::config::{ServiceSettings, Settings};
use chassis_service::stage::Stage;
use chassis_service::{Runtime, assembly, server};
use chassis_testing::bare::{Bare, NO_MIGRATIONS};
use chassis_testing::{TestCaller, TestServer, eventually, quiet_port};
use clap::{CommandFactory, FromArgMatches, Parser};
use proto::audit::ListAuditRequest;
use proto::audit::audit_service_client::AuditServiceClient;
use sqlx::{Connection, PgConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

const POOL: i64 = 4;

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    own: ServiceSettings,
}

/// A service as it runs by itself, with a server of its own.
struct Served {
    database: TestServer,
    channel: Channel,
    operators: SocketAddr,
    clock: Clock,
    _stop: watch::Sender<Stage>,
}

impl Served {
    async fn start() -> Self {
        let database = TestServer::start().await;
        chassis_data::migrations::migrate(database.url(), "bare", &NO_MIGRATIONS).await.unwrap();
        let (listen, operators) = two_ports();
        let (grpc, metrics, pool) = (listen.to_string(), operators.to_string(), POOL.to_string());
        let flags = ["test", "--database-url", database.url(), "--context-secret", chassis_testing::secret()];
        let own = ["--listen", &grpc, "--metrics-listen", &metrics, "--database-pool", &pool];
        let options = Flags::command().get_matches_from(flags.iter().chain(&own));
        let Flags { settings, own } = Flags::from_arg_matches(&options).unwrap();
        let clock = chassis_testing::clock();
        let runtime = Runtime::new("bare", &settings, &own, options, clock.clone(), None).unwrap();
        let (stop, stopped) = watch::channel(Stage::Running);
        tokio::spawn(async move {
            let parts = assembly::assemble(Arc::new(Bare), &runtime, stopped.clone());
            server::serve(parts, runtime, &settings, stopped).await.unwrap();
        });
        let channel = Endpoint::from_shared(format!("http://{listen}")).unwrap().connect_lazy();
        let served = Self { database, channel, operators, clock, _stop: stop };
        eventually("the process listens", async || TcpStream::connect(operators).await.is_ok()).await;
        served
    }

    /// Status and text of `/readyz`.
    async fn readyz(&self) -> (u16, String) {
        let mut stream = TcpStream::connect(self.operators).await.unwrap();
        stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    async fn observer(&self) -> PgConnection {
        PgConnection::connect(self.database.url()).await.unwrap()
    }

    /// Reads of so many accounts.
    fn reads(&self, count: usize) -> JoinSet<Code> {
        let mut reads = JoinSet::new();
        for _ in 0..count {
            let request = TestCaller::mesh(&chassis_testing::account(), &self.clock)
                .request(ListAuditRequest::default());
            let mut client = AuditServiceClient::new(self.channel.clone());
            reads.spawn(async move { client.list_audit(request).await.err().map_or(Code::Ok, |s| s.code()) });
        }
        reads
    }
}

/// Both are free, and not the same.
fn two_ports() -> (SocketAddr, SocketAddr) {
    let first = quiet_port();
    let _held = TcpListener::bind(first).unwrap();
    (first, quiet_port())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_is_ready_while_all_of_its_connections_wait_for_a_lock() {
    let served = Served::start().await;
    let (mut holder, mut observer) = (served.observer().await, served.observer().await);
    sqlx::raw_sql("begin; lock bare.log in access exclusive mode").execute(&mut holder).await.unwrap();
    let mut reads = served.reads(200);
    eventually("every connection of the pool waits", async || {
        let waiting = "select count(*) from pg_stat_activity
                       where application_name = 'bare' and wait_event_type = 'Lock'";
        sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut observer).await.unwrap() == POOL
    })
    .await;
    let mut answers = Vec::new();
    while !reads.is_empty() {
        assert_eq!(served.readyz().await, (200, "ready\n".to_owned()));
        while let Some(answer) = reads.try_join_next() {
            answers.push(answer.unwrap());
        }
    }
    assert!(answers.iter().all(|code| *code == Code::Unavailable), "none was served: {answers:?}");
    let kept = "select count(*) from pg_stat_activity where application_name = 'bare readiness'";
    let kept: i64 = sqlx::query_scalar(kept).fetch_one(&mut observer).await.unwrap();
    assert_eq!(kept, 1, "the same connection each time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_whose_database_is_gone_says_why_it_is_not_ready_and_comes_back_with_it() {
    let mut served = Served::start().await;
    assert_eq!(served.readyz().await, (200, "ready\n".to_owned()));

    let stopped = served.database.stand_still();
    // Not at once: it may only be slow.
    let silent = (503, "the database does not answer\n".to_owned());
    eventually("it is not ready", async || served.readyz().await == silent).await;
    TestServer::go_on(&stopped);
    eventually("it is ready", async || served.readyz().await.0 == 200).await;

    served.database.crash().await;
    let (status, reason) = served.readyz().await;
    assert_eq!(status, 503);
    assert!(reason.starts_with("the database cannot be used: ") && reason.contains("refused"), "{reason}");
    served.database.start_again().await;
    assert_eq!(served.readyz().await, (200, "ready\n".to_owned()));
}
