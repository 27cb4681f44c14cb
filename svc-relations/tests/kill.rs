//! The service as a real process that is killed again and again while clients are created through a real gateway.

#![allow(clippy::unwrap_used, reason = "a test stops where its fact is false")]

use std::sync::Arc;

use chassis::testing::{Process, TestDatabase, quiet_port};
use chassis::{Clock, Service};
use gateway::testing::{Answer, Api, TestGateway};
use serde_json::json;
use svc_relations::Relations;
use tokio::sync::watch;

const CLIENTS: usize = 120;
const KILLS: usize = 6;

/// Repeats a keyed request until it is answered, as an integration does. The gateway's own pauses set the pace.
async fn create_until_answered(api: &Api, index: usize) -> Answer {
    let body = json!({"company_name": format!("Client {index}"), "external_id": format!("x-{index}")});
    // Far more often than a service needs to come back.
    for _ in 0..2_000 {
        let answer = api.post_keyed("/v1/clients", &format!("key-{index}"), body.clone()).await;
        match answer.status.as_u16() {
            201 => return answer,
            409 | 503 | 504 => {}
            status => panic!("{status}: {}", String::from_utf8_lossy(&answer.body)),
        }
    }
    panic!("the service never came back")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_service_loses_nothing_and_doubles_nothing() {
    let database =
        TestDatabase::new(&[(gateway::NAME, &gateway::MIGRATIONS), ("relations", Relations::migrations())])
            .await;
    let address = quiet_port();
    let flags = ["--database-url", database.url()];
    let mut process = Process::start(env!("CARGO_BIN_EXE_svc-relations"), address, &flags);
    let peers = [format!("relations=http://{address}")];
    let gateway = TestGateway::start(&database, &Clock::system(), &peers, &["--rate-per-minute", "0"]).await;
    while gateway.api_with("").get("/readyz?mesh").await.status != 200 {}
    let account = gateway.account("Bakery").await;
    let api = gateway.api(&account, &["relations.read", "relations.write"]).await;

    let (done, mut progress) = watch::channel(0);
    let done = Arc::new(done);
    let workers = (0..8).map(|worker| {
        let (api, done) = (api.clone(), Arc::clone(&done));
        tokio::spawn(async move {
            let mut first_answers = Vec::new();
            for index in (worker..CLIENTS).step_by(8) {
                first_answers.push((index, create_until_answered(&api, index).await.body));
                done.send_modify(|count| *count += 1);
            }
            first_answers
        })
    });
    let workers: Vec<_> = workers.collect();
    for round in 1..=KILLS {
        progress.wait_for(|count| *count >= round * CLIENTS / (KILLS + 2)).await.unwrap();
        process.kill_and_restart();
    }
    for worker in workers {
        for (index, first) in worker.await.unwrap() {
            let repeated = create_until_answered(&api, index).await;
            assert_eq!(repeated.header("x-idempotent-replay"), Some("true"));
            assert_eq!(repeated.body, first);
        }
    }
    let mut connection = database.connect().await;
    let (count, names, lowest, highest): (i64, i64, String, String) = sqlx::query_as(
        "select count(*), count(distinct company_name), min(debtor_number), max(debtor_number) from relations.relation",
    )
    .fetch_one(&mut connection)
    .await
    .unwrap();
    assert_eq!((usize::try_from(count), usize::try_from(names)), (Ok(CLIENTS), Ok(CLIENTS)));
    assert_eq!((lowest, highest), ("D-00001".to_owned(), format!("D-{CLIENTS:05}")), "numbers have no gaps");
    assert_eq!(api.get("/v1/clients").await.at("/meta/total"), CLIENTS);
}
