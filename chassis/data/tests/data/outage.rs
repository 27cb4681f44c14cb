//! A database server that stops responding or crashes, and returns: its clients recover immediately.

#![allow(clippy::unwrap_used, reason = "a test stops where its fact is false")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use chassis_base::{Account, Error};
use chassis_data::{Db, Tx};
use chassis_testing::bare::{NO_MIGRATIONS, write};
use chassis_testing::{TestServer, eventually};
use sqlx::{Connection, PgConnection};

async fn start() -> (TestServer, Db) {
    let server = TestServer::start().await;
    chassis_data::migrations::migrate(server.url(), "bare", &NO_MIGRATIONS).await.unwrap();
    let db = Db::open(server.url(), "bare", 4, chassis_testing::clock(), Vec::new()).unwrap();
    (server, db)
}

async fn read(db: &Db) -> Result<(), Error> {
    db.read(async |connection| {
        sqlx::query("select 1").fetch_one(&mut *connection).await?;
        Ok::<_, Error>(())
    })
    .await?;
    Ok(())
}

async fn take_number(tx: &mut Tx<'_>, (): &()) -> Result<i64, Error> {
    let account = tx.account();
    chassis_data::numbering::next(tx.db(), account, "shared").await
}

/// Reads and writes with a deadline, like requests, until `over` is set.
struct Load {
    over: AtomicBool,
    given_up: AtomicUsize,
}

impl Load {
    async fn run(self: Arc<Self>, db: Db, account: Account) -> Vec<Error> {
        let mut failed = Vec::new();
        while !self.over.load(Ordering::Relaxed) {
            let request = async {
                read(&db).await?;
                db.record(&account, &(), take_number).await.map(|_| ())
            };
            match tokio::time::timeout(Duration::from_millis(100), request).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => failed.push(error),
                Err(_) => {
                    self.given_up.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        failed
    }
}

#[tokio::test]
async fn nobody_gets_a_session_that_was_given_up_while_the_database_stood_still() {
    let (server, db) = start().await;
    let load = Arc::new(Load { over: AtomicBool::new(false), given_up: AtomicUsize::new(0) });
    let tasks: Vec<_> = (0..12)
        .map(|_| tokio::spawn(Arc::clone(&load).run(db.clone(), chassis_testing::account())))
        .collect();
    let account = chassis_testing::account();
    for _ in 0..10 {
        db.record(&account, &(), take_number).await.unwrap();
        let before = load.given_up.load(Ordering::Relaxed);
        let stopped = server.stand_still();
        eventually("requests are given up", async || load.given_up.load(Ordering::Relaxed) >= before + 24)
            .await;
        TestServer::go_on(&stopped);
        for _ in 0..10 {
            read(&db).await.unwrap();
            db.record(&account, &(), take_number).await.unwrap();
        }
    }
    load.over.store(true, Ordering::Relaxed);
    for task in tasks {
        let failed = task.await.unwrap();
        // During an outage it is right that no connection is available in time; a failing statement is not.
        assert!(failed.iter().all(Error::is_database_unreachable), "{failed:?}");
    }
    let mut observer = PgConnection::connect(server.url()).await.unwrap();
    eventually("no session is left in a transaction", async || {
        let left = sqlx::query_scalar::<_, i64>(
            "select count(*) from pg_stat_activity
             where application_name = 'bare' and (state like 'idle in transaction%' or xact_start is not null)",
        );
        left.fetch_one(&mut observer).await.unwrap() == 0
    })
    .await;
}

/// Opens as many connections as the pool may have.
async fn fill(db: &Db) {
    let connections = futures::future::join_all((0..4).map(|_| db.acquire())).await;
    for connection in connections {
        connection.unwrap().done();
    }
}

#[tokio::test]
async fn after_a_crash_a_write_succeeds_at_once_and_no_more_than_one_read_fails() {
    let (mut server, db) = start().await;
    let account = chassis_testing::account();
    fill(&db).await;
    server.crash().await;
    server.start_again().await;
    write(&db, &account, async |_| Ok(())).await;
    for _ in 0..20 {
        read(&db).await.unwrap();
    }
    fill(&db).await;
    server.crash().await;
    server.start_again().await;
    let mut failed = 0;
    for _ in 0..20 {
        failed += usize::from(read(&db).await.is_err());
    }
    assert!(failed <= 1, "{failed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_while_the_server_starts_is_served_when_it_is_there() {
    let (mut server, db) = start().await;
    fill(&db).await;
    server.crash().await;
    let waiting = tokio::spawn(async move {
        // A client that retries until it is served.
        while let Err(error) = read(&db).await {
            assert!(error.is_database_unreachable(), "{error:?}");
        }
    });
    server.start_again().await;
    waiting.await.unwrap();
}
