//! PgBouncer in transaction mode in front of the database: the settings that it needs, and the errors when they are
//! missing.

#![allow(clippy::unwrap_used, reason = "a test stops where its fact is false")]

use chassis_base::Error;
use chassis_data::connect::Address;
use chassis_data::migrations::migrate;
use chassis_data::{Db, log};
use chassis_testing::bare::{NO_MIGRATIONS, database, write};
use chassis_testing::{TestDatabase, TestPooler, eventually};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection, Row};

fn open(url: &str, pooler: bool) -> Db {
    Db::open(Address { url, pooler }, "bare", 8, chassis_testing::clock(), Vec::new()).unwrap()
}

async fn number(db: &Db) -> Result<i64, Error> {
    // The table has no schema here, so the search path of the role must be right.
    let query = sqlx::query_scalar("select coalesce(max(value), 0) from counter");
    db.read(async |connection| Ok(query.fetch_one(connection).await?)).await
}

#[tokio::test]
async fn many_readers_and_writers_share_the_two_connections_of_a_pooler() {
    let database = database().await;
    let pooler = TestPooler::start(2, true);
    let db = open(&pooler.url(database.url(), "bare").await, true);
    db.check().await.unwrap();
    let account = chassis_testing::account();
    let uses = (0..100).map(async |turn| {
        if turn % 4 == 0 {
            write(&db, &account, async |tx| {
                let account = tx.account();
                chassis_data::numbering::next(tx.db(), account, "shared").await.map(|_| ())
            })
            .await;
        } else {
            number(&db).await.unwrap();
        }
    });
    futures::future::join_all(uses).await;
    assert_eq!(number(&db).await.unwrap(), 25);
    let sql =
        "select count(*) from pg_stat_activity where datname = current_database() and usename = 'test_bare'";
    let sessions: i64 = sqlx::query_scalar(sql).fetch_one(&mut database.connect().await).await.unwrap();
    assert!((1..=2).contains(&sessions), "{sessions}");
}

#[tokio::test]
async fn no_statement_is_compiled_before_it_runs() {
    let database = database().await;
    let server = TestPooler::start(2, true);
    let pooled = server.url(database.url(), "bare").await;
    for (url, pooler) in [(database.url(), false), (&pooled, true)] {
        let db = open(url, pooler);
        let jit: Result<String, Error> =
            db.read(async |connection| Ok(sqlx::query_scalar("show jit").fetch_one(connection).await?)).await;
        assert_eq!(jit.unwrap(), "off", "pooler: {pooler}");
    }
}

#[tokio::test]
async fn a_program_that_does_not_know_of_the_pooler_is_told_of_the_setting() {
    let database = database().await;
    let pooler = TestPooler::start(2, true);
    let db = open(&pooler.url(database.url(), "bare").await, false);
    let told = db.check().await.unwrap_err();
    assert!(
        told.contains("unsupported startup parameter") && told.contains("DATABASE_POOLER=true"),
        "{told}"
    );
    // The error is permanent, so it is not retried.
    assert!(matches!(number(&db).await, Err(Error::Database(sqlx::Error::InvalidArgument(_)))));
    let probed = db.ping().await.unwrap_err().to_string();
    assert!(probed.contains("DATABASE_POOLER=true"), "{probed}");
}

#[tokio::test]
async fn what_a_pooler_drops_is_missed() {
    let database = database().await;
    let pooler = TestPooler::start(2, false);
    let db = open(&pooler.plain_url(database.url()), false);
    let told = db.check().await.unwrap_err();
    assert!(told.contains("and not bare first") && told.contains("DATABASE_POOLER=true"), "{told}");
}

#[tokio::test]
async fn a_role_without_its_settings_is_noticed() {
    let database = database().await;
    let pooler = TestPooler::start(2, true);
    let db = open(&pooler.plain_url(database.url()), true);
    let told = db.check().await.unwrap_err();
    assert!(told.contains("and not bare first") && told.contains("run deploy/k8s/roles.sql"), "{told}");
}

#[tokio::test]
async fn a_database_that_is_away_at_the_start_may_come_later() {
    let db = open("postgres://nobody:x@127.0.0.1:1/none", true);
    db.check().await.unwrap();
}

#[tokio::test]
async fn commands_that_need_a_session_of_their_own_refuse_a_pooler() {
    let database = database().await;
    let refusing = TestPooler::start(2, true);
    let dropping = TestPooler::start(2, false);
    let urls = [
        refusing.url(database.url(), "bare").await,
        // Refused even if the role has the search path.
        dropping.url(database.url(), "bare").await,
        dropping.plain_url(database.url()),
    ];
    for url in urls {
        let migrated = migrate(&url, "bare", &NO_MIGRATIONS).await.unwrap_err();
        let compacted = log::compact(&url, "bare", 1, chassis_testing::moment()).await.unwrap_err();
        for refused in [migrated, compacted] {
            let told = chassis_base::error::chain(&refused);
            assert!(told.contains("DATABASE_URL name the database itself"), "{told}");
        }
    }
}

#[tokio::test]
async fn a_command_has_no_limits_whatever_its_role_has() {
    let database = database().await;
    let pooler = TestPooler::start(2, true);
    // The same role, connected to the database directly.
    let limited: PgConnectOptions = pooler.url(database.url(), "bare").await.parse().unwrap();
    let server: PgConnectOptions = database.url().parse().unwrap();
    let limited = limited.host(server.get_host()).port(server.get_port());
    let mut session = PgConnection::connect_with(&limited).await.unwrap();
    let limit: String = sqlx::query_scalar("show statement_timeout").fetch_one(&mut session).await.unwrap();
    assert_eq!(limit, "10s");
    migrate(limited.to_url_lossy().as_str(), "bare", &NO_MIGRATIONS).await.unwrap();
}

/// Behind a pooler every transaction may run in another session; the check of a connection must find an open
/// transaction all the same.
#[tokio::test]
async fn a_transaction_that_was_left_open_is_handed_to_nobody() {
    let database = database().await;
    let pooler = TestPooler::start(3, true);
    let db = open(&pooler.url(database.url(), "bare").await, true);
    for _ in 0..5 {
        let mut connection = db.acquire().await.unwrap();
        sqlx::raw_sql("begin").execute(&mut *connection).await.unwrap();
        drop(connection);
        // The pool inspects the connection and closes it, which ends the transaction.
        eventually("no transaction is open", async || open_transactions(&database).await == 0).await;
        let mut connection = db.acquire().await.unwrap();
        let asking = sqlx::raw_sql("select now() = statement_timestamp()").fetch_one(&mut *connection);
        assert!(asking.await.unwrap().get::<bool, _>(0), "it is outside a transaction");
        connection.done();
    }
}

async fn open_transactions(database: &TestDatabase) -> i64 {
    let sql = "select count(*) from pg_stat_activity
               where datname = current_database() and state like 'idle in transaction%'";
    sqlx::query_scalar(sql).fetch_one(&mut database.connect().await).await.unwrap()
}

/// A request that exceeds the wait limit of the pooler gets a retryable error, and the process stays ready: if it
/// became unready, its requests would go to replicas that are just as busy.
#[tokio::test]
async fn a_pooler_whose_connections_are_all_at_work_is_a_busy_database_and_not_a_broken_one() {
    let database = database().await;
    let pooler = TestPooler::start(1, true);
    let url = pooler.url(database.url(), "bare").await;
    let mut holder =
        PgConnection::connect_with(&url.parse::<PgConnectOptions>().unwrap().extra_float_digits(None))
            .await
            .unwrap();
    sqlx::raw_sql("begin").execute(&mut holder).await.unwrap();
    let db = open(&url, true);
    let (busy, ready) = tokio::join!(number(&db), db.ping());
    assert_eq!(tonic::Status::from(busy.unwrap_err()).code(), tonic::Code::Unavailable);
    ready.unwrap();
    sqlx::raw_sql("rollback").execute(&mut holder).await.unwrap();
    assert_eq!(number(&db).await.unwrap(), 0);
}
