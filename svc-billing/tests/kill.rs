//! The service as a real process that is killed repeatedly while final invoices are created through a real gateway.

#![allow(clippy::unwrap_used, reason = "a test stops where its fact is false")]

mod ready;

use std::sync::Arc;

use chassis_base::Clock;
use chassis_service::Service;
use chassis_testing::{Process, TestDatabase, eventually, quiet_port};
use gateway::testing::{Answer, Api, TestGateway};
use ready::until_ready;
use serde_json::json;
use svc_billing::Billing;
use svc_relations::Relations;
use tokio::sync::watch;

const INVOICES: usize = 32;
const KILLS: usize = 5;
/// As many as a small machine renders PDFs at the same time, and some that are in their transaction meanwhile.
const WORKERS: usize = 6;

/// Repeats a keyed request until it is answered, as an integration does. The gateway's own retry delays set the pace.
async fn create_until_answered(api: &Api, client: &str, index: usize) -> Answer {
    let body = json!({
        "title": format!("Invoice {index}"), "client_id": client, "generation_mode": "final",
        "external_id": format!("x-{index}"), "rows": [{"name": "Bread", "unit_price": 4}],
    });
    // Far more attempts than a restart of the service takes.
    for _ in 0..2_000 {
        let answer = api.post_keyed("/v1/invoices", &format!("key-{index}"), body.clone()).await;
        match answer.status.as_u16() {
            201 => return answer,
            409 | 503 | 504 => assert_ne!(answer.at("/code"), "external_id_taken", "it was created twice"),
            status => panic!("{status}: {}", String::from_utf8_lossy(&answer.body)),
        }
    }
    panic!("the service never came back")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_service_loses_and_duplicates_no_number() {
    let database = TestDatabase::new(&[
        (gateway::NAME, &gateway::MIGRATIONS),
        ("relations", Relations::migrations()),
        ("billing", Billing::migrations()),
    ])
    .await;
    let clock = Clock::system();
    let relations = chassis_testing::start::<Relations>(database.url(), &clock).await;
    let files = tempfile::tempdir().unwrap();
    let address = quiet_port();
    let peers = [format!("relations={}", relations.url()), format!("billing=http://{address}")];
    let flags = [
        "--database-url",
        database.url(),
        "--peers",
        &peers[0],
        "--files-dir",
        files.path().to_str().unwrap(),
        "--deadline-ms",
        "120000",
    ];
    let mut process = Process::start(env!("CARGO_BIN_EXE_svc-billing"), address, &flags);
    let flags = ["--rate-per-minute", "0", "--deadline-ms", "120000"];
    let gateway = TestGateway::start(&database, &clock, &peers, &flags).await;
    until_ready(&gateway).await;
    let account = gateway.account("Bakery").await;
    let scopes = ["relations.write", "invoices.read", "invoices.write"];
    let api = gateway.api(&account, &scopes).await;
    let client = api.post("/v1/clients", json!({"company_name": "C"})).await.expect(201).at("/data/id");
    let client = client.as_str().unwrap().to_owned();

    let (done, mut progress) = watch::channel(0);
    let done = Arc::new(done);
    let workers = (0..WORKERS).map(|worker| {
        let (api, done, client) = (api.clone(), Arc::clone(&done), client.clone());
        tokio::spawn(async move {
            let mut first_answers = Vec::new();
            for index in (worker..INVOICES).step_by(WORKERS) {
                first_answers.push((index, create_until_answered(&api, &client, index).await.body));
                done.send_modify(|count| *count += 1);
            }
            first_answers
        })
    });
    let workers: Vec<_> = workers.collect();
    for round in 1..=KILLS {
        progress.wait_for(|count| *count >= round * INVOICES / (KILLS + 2)).await.unwrap();
        process.kill_and_restart();
    }
    for worker in workers {
        for (index, first) in worker.await.unwrap() {
            let repeated = create_until_answered(&api, &client, index).await;
            assert_eq!(repeated.header("x-idempotent-replay"), Some("true"));
            assert_eq!(repeated.body, first);
        }
    }
    let mut connection = database.connect().await;
    eventually("every invoice has its PDF, whichever was killed before it was made", async || {
        let sql = "select count(*) from billing.document where pdf_version is distinct from content_version";
        sqlx::query_scalar::<_, i64>(sql).fetch_one(&mut connection).await.unwrap() == 0
    })
    .await;
    let (numbers, keys, lowest, highest, counted): (i64, i64, String, String, i64) = sqlx::query_as(
        "select count(distinct number), count(distinct external_id), min(number), max(number),
                (select sum(entries)::bigint from billing.total
                 where list = 'invoice' and bucket = (select min(bucket) from billing.total))
         from billing.document",
    )
    .fetch_one(&mut database.connect().await)
    .await
    .unwrap();
    let all = i64::try_from(INVOICES).unwrap();
    assert_eq!((numbers, keys, counted), (all, all, all), "each key made one invoice, and each is counted");
    assert!(lowest.ends_with("-00001") && highest.ends_with(&format!("-{all:05}")), "{lowest} to {highest}");
    assert_eq!(api.get("/v1/invoices").await.at("/meta/total"), INVOICES);
}
