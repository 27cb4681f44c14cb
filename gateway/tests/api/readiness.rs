//! A gateway that is busy is ready; one without its database is not, until that is back.

use std::str::FromStr;

use chassis_testing::{TestDatabase, eventually};
use gateway::keys::NewKey;
use gateway::testing::TestGateway;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::task::JoinSet;

const READY: &str = "ready; no answer from: relations";

async fn start() -> (TestDatabase, TestGateway) {
    let database = TestDatabase::new(&[("gateway", &gateway::MIGRATIONS)]).await;
    let peers = ["relations=http://127.0.0.1:1".to_owned()];
    let flags = ["--database-pool", "4", "--failed-auth-per-minute", "0"];
    let gateway = TestGateway::start(&database, &chassis_testing::clock(), &peers, &flags).await;
    (database, gateway)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_is_ready_while_all_of_its_connections_wait_for_a_lock() {
    let (database, gateway) = start().await;
    let (mut holder, mut observer) = (database.connect().await, database.connect().await);
    let lock = "begin; lock gateway.api_key in access exclusive mode";
    sqlx::raw_sql(lock).execute(&mut holder).await.unwrap();
    let mut requests = JoinSet::new();
    for _ in 0..200 {
        // In the right format, so that only the database knows that there is no such key.
        let api = gateway.api_with(&NewKey::generate().text);
        requests.spawn(async move { api.get("/v1/clients").await.status.as_u16() });
    }
    eventually("every connection of the pool waits", async || {
        let waiting = "select count(*) from pg_stat_activity where datname = current_database()
                       and application_name = 'gateway' and wait_event_type = 'Lock'";
        sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut observer).await.unwrap() == 4
    })
    .await;
    let mut answers = Vec::new();
    while !requests.is_empty() {
        assert_eq!(gateway.app.readiness.check().await.as_deref(), Ok(READY));
        while let Some(status) = requests.try_join_next() {
            answers.push(status.unwrap());
        }
    }
    assert!(answers.iter().all(|status| *status == 503), "none was served: {answers:?}");
    gateway.api_with("").get("/readyz").await.expect(200);
}

#[tokio::test]
async fn a_gateway_without_its_database_is_not_ready_until_it_is_back() {
    let (database, gateway) = start().await;
    let api = gateway.api_with("");
    api.get("/readyz").await.expect(200);
    let own = PgConnectOptions::from_str(database.url()).unwrap();
    let name = own.get_database().unwrap().to_owned();
    // A connection cannot close the database that it is in.
    let mut operator = PgConnection::connect_with(&own.database("postgres")).await.unwrap();
    for (allowed, status, said) in
        [(false, 503, "no answer from: the database, relations"), (true, 200, READY)]
    {
        let sql = format!("alter database {name} allow_connections {allowed}");
        sqlx::query(AssertSqlSafe(sql)).execute(&mut operator).await.unwrap();
        sqlx::query("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1")
            .bind(&name)
            .execute(&mut operator)
            .await
            .unwrap();
        eventually(said, async || gateway.app.readiness.check().await.unwrap_or_else(|it| it) == said).await;
        assert_eq!(api.get("/readyz").await.expect(status).body, format!("{said}\n"));
    }
}
