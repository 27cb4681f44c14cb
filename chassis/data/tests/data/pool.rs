//! The connection pool on real Postgres: it is bounded and fair, and drops broken connections.

#![allow(clippy::unwrap_used, reason = "a test stops where its fact is false")]

use std::task::Poll;

use chassis_base::{Account, Error};
use chassis_data::{Db, Tx};
use chassis_testing::bare::{call, database, open, write};
use chassis_testing::{TestCaller, TestDatabase, eventually};
use proto::api::provisioning_service_client::ProvisioningServiceClient;
use proto::api::{ProvisionAccountRequest, ProvisionAccountResponse};
use proto::audit::ListAuditRequest;
use proto::audit::audit_service_client::AuditServiceClient;
use sqlx::PgConnection;
use sqlx::postgres::PgConnectOptions;
use tokio::net::{TcpListener, TcpStream};

async fn backend(db: &Db) -> Result<i32, Error> {
    let backend = db
        .read(async |connection| {
            let backend = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut *connection).await?;
            Ok::<_, Error>(backend)
        })
        .await?;
    Ok(backend)
}

#[tokio::test]
async fn many_readers_and_writers_share_a_few_connections() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let db = open(&database, &clock);
    let account = chassis_testing::account();
    let uses = (0..200).map(async |number| {
        if number % 4 == 0 {
            write(&db, &account, async |tx| {
                let account = tx.account();
                chassis_data::numbering::next(tx.db(), account, "shared").await.map(|_| ())
            })
            .await;
        } else {
            backend(&db).await.unwrap();
        }
    });
    futures::future::join_all(uses).await;
    let mut connection = database.connect().await;
    let (backends, numbers): (i64, i64) = sqlx::query_as(
        "select (select count(*) from pg_stat_activity where application_name = 'bare' and datname = current_database()),
                (select value from bare.counter)",
    )
    .fetch_one(&mut connection)
    .await
    .unwrap();
    assert!((1..=4).contains(&backends), "{backends}");
    assert_eq!(numbers, 50);
}

#[tokio::test]
async fn a_read_that_was_given_up_does_not_disturb_the_next() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let db = open(&database, &clock);
    for _ in 0..20 {
        let mut connection = db.acquire().await.unwrap();
        let slow = sqlx::query("select generate_series(1, 1000), 1 / (select 0 from pg_sleep(0.05))")
            .fetch_all(&mut *connection);
        // Polled once, so that the statement is sent, and then dropped. The statement itself ends with an error.
        assert!(futures::poll!(std::pin::pin!(slow)).is_pending());
        drop(connection);
        backend(&db).await.unwrap();
    }
}

#[tokio::test]
async fn connections_that_the_server_has_closed_are_replaced() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let db = open(&database, &clock);
    let before = backend(&db).await.unwrap();
    let ended: bool = sqlx::query_scalar("select pg_terminate_backend($1)")
        .bind(before)
        .fetch_one(&mut database.connect().await)
        .await
        .unwrap();
    assert!(ended);
    eventually("reads work again", async || backend(&db).await.is_ok_and(|now| now != before)).await;
}

#[tokio::test]
async fn a_write_on_a_connection_that_was_lost_a_moment_ago_succeeds() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let (db, account) = (open(&database, &clock), chassis_testing::account());
    let mut observer = database.connect().await;
    for _ in 0..5 {
        let session = backend(&db).await.unwrap();
        let ended = sqlx::query_scalar::<_, bool>("select pg_terminate_backend($1, 60000)").bind(session);
        assert!(ended.fetch_one(&mut observer).await.unwrap());
        take_number(&db, &account).await;
    }
}

/// An address of the database that closes the first two connections immediately.
async fn moody(database: &TestDatabase) -> String {
    let options: PgConnectOptions = database.url().parse().unwrap();
    let real = format!("{}:{}", options.get_host(), options.get_port());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = database.url().replace(&real, &listener.local_addr().unwrap().to_string());
    assert_ne!(url, database.url());
    tokio::spawn(async move {
        for number in 0.. {
            let (mut client, _) = listener.accept().await.unwrap();
            if number >= 2 {
                let mut server = TcpStream::connect(&real).await.unwrap();
                tokio::spawn(async move { tokio::io::copy_bidirectional(&mut client, &mut server).await });
            }
        }
    });
    url
}

#[tokio::test]
async fn whoever_waits_is_connected_when_the_server_takes_connections_again() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let url = moody(&database).await;
    let db = Db::open(url.as_str(), "bare", 4, clock.clone(), Vec::new()).unwrap();
    backend(&db).await.unwrap();
}

/// Polls a future at most `polls` times, when its waker asks for it, and then drops it.
async fn given_up_after<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    let (mut future, mut left) = (Box::pin(future), polls);
    std::future::poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Asserts that every connection of the pool is outside a transaction.
async fn assert_clean(db: &Db) {
    let mut connections = Vec::new();
    for _ in 0..4 {
        let mut connection = db.acquire().await.unwrap();
        let row = sqlx::raw_sql("select now() = statement_timestamp()").fetch_one(&mut *connection).await;
        assert!(sqlx::Row::get::<bool, _>(&row.unwrap(), 0));
        connections.push(connection);
    }
    for connection in connections {
        connection.done();
    }
}

async fn in_transaction(connection: &mut PgConnection) -> i64 {
    let counted = sqlx::query_scalar(
        "select count(*) from pg_stat_activity where application_name = 'bare' and datname = current_database()
            and state like 'idle in transaction%'",
    );
    counted.fetch_one(connection).await.unwrap()
}

async fn take_number(db: &Db, account: &Account) {
    write(db, account, async |tx| {
        let account = tx.account();
        chassis_data::numbering::next(tx.db(), account, "shared").await.map(|_| ())
    })
    .await;
}

async fn read_twice(db: &Db) -> Result<(), Error> {
    backend(db).await?;
    db.read(async |connection| {
        let rows = sqlx::query("select generate_series(1, 5000)").fetch_all(&mut *connection).await?;
        assert_eq!(rows.len(), 5000);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn whoever_is_given_up_at_any_point_leaves_no_transaction_behind() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let db = open(&database, &clock);
    let account = chassis_testing::account();
    let mut observer = database.connect().await;
    let (mut written, mut read) = (false, false);
    for polls in 0.. {
        if written && read {
            break;
        }
        // Opens the sessions first, so that statements are cancelled too and not only log-ins.
        assert_clean(&db).await;
        written = written || given_up_after(polls, take_number(&db, &account)).await.is_some();
        assert_clean(&db).await;
        read = read || given_up_after(polls, read_twice(&db)).await.is_some_and(|read| read.is_ok());
        assert_clean(&db).await;
        assert!(polls < 1000);
    }
    eventually("sessions have ended", async || in_transaction(&mut observer).await == 0).await;
    let next: i64 =
        sqlx::query_scalar("select value from bare.counter").fetch_one(&mut observer).await.unwrap();
    take_number(&db, &account).await;
    let after: i64 =
        sqlx::query_scalar("select value from bare.counter").fetch_one(&mut observer).await.unwrap();
    assert_eq!(after, next + 1);
}

#[tokio::test]
async fn a_connection_that_comes_back_in_a_transaction_is_not_handed_on() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let db = open(&database, &clock);
    for _ in 0..5 {
        let mut connection = db.acquire().await.unwrap();
        sqlx::raw_sql("begin").execute(&mut *connection).await.unwrap();
        drop(connection);
        assert_clean(&db).await;
    }
}

#[tokio::test]
async fn a_failed_transaction_is_rolled_back_and_its_connection_is_used_again() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let db = open(&database, &clock);
    let before = backend(&db).await.unwrap();
    for statement in ["select 1 / 0", "select 1"] {
        let fail = async |tx: &mut Tx<'_>, statement: &&'static str| {
            sqlx::query(*statement).execute(tx.db()).await?;
            Err::<(), _>(Error::Internal("as planned".into()))
        };
        db.record(&chassis_testing::account(), &statement, fail).await.unwrap_err();
    }
    eventually("the one connection is back", async || backend(&db).await.unwrap() == before).await;
    assert_clean(&db).await;
}

#[tokio::test]
async fn an_account_whose_writes_wait_for_a_lock_does_not_hold_up_the_others() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let db = open(&database, &clock);
    let (stuck, other) = (chassis_testing::account(), chassis_testing::account());
    take_number(&db, &stuck).await;
    let mut holder = database.connect().await;
    sqlx::raw_sql("begin; select from bare.counter for update").execute(&mut holder).await.unwrap();
    let flood = futures::future::join_all((0..64).map(|_| {
        let (db, call) = (db.clone(), call(&stuck, &clock));
        tokio::spawn(async move { db.write(call, next_number).await.map(|_| ()) })
    }));
    let mut observer = database.connect().await;
    eventually("writes of the account wait for the lock", async || {
        let waiting = sqlx::query_scalar::<_, i64>(
            "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
        );
        waiting.fetch_one(&mut observer).await.unwrap() == 2
    })
    .await;
    for _ in 0..20 {
        backend(&db).await.unwrap();
        take_number(&db, &other).await;
    }
    sqlx::raw_sql("rollback").execute(&mut holder).await.unwrap();
    for outcome in flood.await {
        let refused = outcome.unwrap().err().map(|status| status.code());
        assert!(refused.is_none_or(|code| code == tonic::Code::Unavailable), "{refused:?}");
    }
}

async fn next_number(
    tx: &mut Tx<'_>,
    _: &ProvisionAccountRequest,
) -> Result<ProvisionAccountResponse, Error> {
    let account = tx.account();
    chassis_data::numbering::next(tx.db(), account, "shared").await?;
    Ok(ProvisionAccountResponse {})
}

#[tokio::test]
async fn over_the_mesh_calls_of_other_accounts_go_on_while_one_waits_for_its_lock() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let service = chassis_testing::start::<chassis_testing::bare::Bare>(database.url(), &clock).await;
    let channel = service.channel();
    let provision = async |account: &Account| {
        let request =
            TestCaller::mesh(account, &clock).request(ProvisionAccountRequest { name: "Bakery".into() });
        ProvisioningServiceClient::new(channel.clone()).provision_account(request).await.map(|_| ())
    };
    let (stuck, other) = (chassis_testing::account(), chassis_testing::account());
    provision(&stuck).await.unwrap();
    let mut holder = database.connect().await;
    sqlx::raw_sql("begin; select from bare.account for update").execute(&mut holder).await.unwrap();
    let mut observer = database.connect().await;
    let others = async {
        eventually("half of the connections wait for the lock", async || {
            let waiting = sqlx::query_scalar::<_, i64>(
                "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
            );
            waiting.fetch_one(&mut observer).await.unwrap() == 4
        })
        .await;
        for _ in 0..20 {
            provision(&other).await.unwrap();
            let caller = TestCaller::mesh(&other, &clock);
            let read = caller.request(ListAuditRequest::default());
            let entries = AuditServiceClient::new(channel.clone()).list_audit(read).await.unwrap();
            assert!(!entries.get_ref().entries.is_empty());
        }
        sqlx::raw_sql("rollback").execute(&mut holder).await.unwrap();
    };
    let flood = futures::future::join_all((0..64).map(|_| provision(&stuck)));
    let (flooded, ()) = tokio::join!(flood, others);
    for refused in flooded.into_iter().filter_map(Result::err) {
        assert_eq!(refused.code(), tonic::Code::Unavailable);
        assert!(!chassis_base::error::status::may_have_happened(&refused));
    }
}

#[tokio::test]
async fn over_the_mesh_reads_of_an_account_leave_connections_to_the_others() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let service = chassis_testing::start::<chassis_testing::bare::Bare>(database.url(), &clock).await;
    let (channel, stuck) = (service.channel(), chassis_testing::account());
    let mut holder = database.connect().await;
    let lock = "begin; lock bare.log in access exclusive mode";
    sqlx::raw_sql(lock).execute(&mut holder).await.unwrap();
    let mut observer = database.connect().await;
    let others = async {
        eventually("three quarters of the connections wait for the lock", async || {
            let waiting = sqlx::query_scalar::<_, i64>(
                "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
            );
            waiting.fetch_one(&mut observer).await.unwrap() == 6
        })
        .await;
        for _ in 0..20 {
            backend(&service.runtime.db).await.unwrap();
        }
        sqlx::raw_sql("rollback").execute(&mut holder).await.unwrap();
    };
    let list = async || {
        let read = TestCaller::mesh(&stuck, &clock).request(ListAuditRequest::default());
        AuditServiceClient::new(channel.clone()).list_audit(read).await
    };
    let flood = futures::future::join_all((0..32).map(|_| list()));
    tokio::join!(flood, others);
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_says_that_it_may_have_happened() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let db = open(&database, &clock);
    let end_session = async |tx: &mut Tx<'_>, _: &ProvisionAccountRequest| {
        tx.unaudited("nothing is written");
        let session: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(tx.db()).await?;
        let ended = sqlx::query_scalar::<_, bool>("select pg_terminate_backend($1, 60000)").bind(session);
        assert!(ended.fetch_one(&mut database.connect().await).await?);
        Ok::<_, Error>(ProvisionAccountResponse {})
    };
    let lost = db.write(call(&chassis_testing::account(), &clock), end_session).await.unwrap_err();
    assert_eq!(lost.code(), tonic::Code::Unavailable);
    assert!(chassis_base::error::status::may_have_happened(&lost));
    backend(&db).await.unwrap();
}
