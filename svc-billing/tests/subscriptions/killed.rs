//! Two real processes, killed in turn while they create the invoices of a year.

use chassis_base::Clock;
use chassis_service::Service;
use chassis_testing::{Process, TestDatabase, eventually, quiet_port};
use chrono::Days;
use gateway::testing::TestGateway;
use serde_json::json;
use svc_billing::Billing;
use svc_relations::Relations;

use crate::ready::until_ready;

const SUBSCRIPTIONS: i64 = 6;
/// 52 weeks ago and every week since, today included.
const WEEKS: i64 = 53;

#[tokio::test(flavor = "multi_thread")]
async fn killed_processes_lose_and_duplicate_no_invoice() {
    let database = TestDatabase::new(&[
        (gateway::NAME, &gateway::MIGRATIONS),
        ("relations", Relations::migrations()),
        ("billing", Billing::migrations()),
    ])
    .await;
    let clock = Clock::system();
    let relations = chassis_testing::start::<Relations>(database.url(), &clock).await;
    let files = tempfile::tempdir().unwrap();
    let peers = format!("relations={}", relations.url());
    let folder = files.path().to_str().unwrap();
    let flags = ["--database-url", database.url(), "--peers", &peers, "--files-dir", folder];
    let program = env!("CARGO_BIN_EXE_svc-billing");
    let first = quiet_port();
    let mut one = Process::start(program, first, &flags);
    let peers = [peers.clone(), format!("billing=http://{first}")];
    let gateway = TestGateway::start(&database, &clock, &peers, &["--rate-per-minute", "0"]).await;
    until_ready(&gateway).await;
    let account = gateway.account("Bakery").await;
    let api = gateway.api(&account, &["relations.write", "relations.read", "invoices.read"]).await;
    let client = api.post("/v1/clients", json!({"company_name": "C"})).await.expect(201).at("/data/id");
    let since = clock.today(account.timezone) - Days::new(7 * 52);
    for _ in 0..SUBSCRIPTIONS {
        let body = json!({
            "client_id": client, "frequency": "weekly", "subscription_start": since, "first_generate_date": since,
            "lines": [{"title": "Bread", "unit_price": 4}],
        });
        api.post("/v1/subscriptions", body).await.expect(201);
    }
    // Started when the first process holds the lease, so that it has to wait for the lease to expire.
    let mut other = Process::start(program, "127.0.0.1:0".parse().unwrap(), &flags);
    let all = SUBSCRIPTIONS * WEEKS;
    let made = async || -> i64 {
        let sql = "select count(*) from billing.document";
        sqlx::query_scalar(sql).fetch_one(&mut database.connect().await).await.unwrap()
    };
    eventually("a part is made", async || made().await > all / 10).await;
    one.kill();
    let before = made().await;
    eventually("the other goes on", async || made().await > before + all / 10).await;
    other.kill_and_restart();
    one.kill_and_restart();
    eventually("all is made", async || made().await >= all).await;

    let (invoices, periods, numbers): (i64, i64, i64) = sqlx::query_as(
        "select count(*), count(distinct (subscription_id, period_from)), count(distinct number) from billing.document",
    )
    .fetch_one(&mut database.connect().await)
    .await
    .unwrap();
    assert_eq!((invoices, periods, numbers), (all, all, all));
    let used: i64 =
        sqlx::query_scalar("select sum(value)::bigint from billing.counter where name like 'invoice/%'")
            .fetch_one(&mut database.connect().await)
            .await
            .unwrap();
    assert_eq!(used, all, "no number is missing");
    assert_eq!(api.get("/v1/invoices").await.at("/meta/total"), all, "each is counted");
}
