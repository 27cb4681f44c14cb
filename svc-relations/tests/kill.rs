//! The service as a real process that is killed several times while clients are created through a real gateway.

#![allow(clippy::unwrap_used, reason = "a test stops where its assumption is false")]

use std::sync::Arc;

use chassis_base::Clock;
use chassis_service::Service;
use chassis_testing::{Process, TestDatabase, eventually, quiet_port};
use gateway::testing::{Answer, Api, TestGateway};
use serde_json::json;
use svc_relations::Relations;
use tokio::sync::watch;

const CLIENTS: usize = 120;
const KILLS: usize = 6;
/// Far more attempts than a service needs to start. The gateway pauses between its own attempts, which sets the pace.
const MAX_ATTEMPTS: usize = 2_000;

/// Waits until the gateway reaches the service.
async fn wait_until_ready(api: &Api) {
    eventually("the gateway is ready", async || api.get("/readyz?mesh").await.status == 200).await;
}

/// Repeats a keyed request until it is answered, as an integration does.
async fn create_until_answered(api: &Api, index: usize) -> Answer {
    let body = json!({"company_name": format!("Client {index}"), "external_id": format!("x-{index}")});
    let mut last = None;
    for _ in 0..MAX_ATTEMPTS {
        let answer = api.post_keyed("/v1/clients", &format!("key-{index}"), body.clone()).await;
        match answer.status.as_u16() {
            201 => return answer,
            status @ (409 | 503 | 504) => last = Some(status),
            status => panic!("{status}: {}", String::from_utf8_lossy(&answer.body)),
        }
    }
    panic!("the request was not answered; the last status: {last:?}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_service_loses_nothing_and_duplicates_nothing() {
    let database =
        TestDatabase::new(&[(gateway::NAME, &gateway::MIGRATIONS), ("relations", Relations::migrations())])
            .await;
    let address = quiet_port();
    let flags = ["--database-url", database.url()];
    let mut process = Process::start(env!("CARGO_BIN_EXE_svc-relations"), address, &flags);
    let peers = [format!("relations=http://{address}")];
    let gateway = TestGateway::start(&database, &Clock::system(), &peers, &["--rate-per-minute", "0"]).await;
    wait_until_ready(&gateway.api_with("")).await;
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
        // The kills are spread over the run: each waits for its share of the answers.
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
    let (count, names, numbers): (i64, i64, i64) = sqlx::query_as(
        "select count(*), count(distinct company_name), count(distinct debtor_number) from relations.relation",
    )
    .fetch_one(&mut connection)
    .await
    .unwrap();
    assert_eq!(
        [count, names, numbers].map(usize::try_from),
        [Ok(CLIENTS); 3],
        "each once, with a number of its own"
    );
    assert_eq!(api.get("/v1/clients").await.at("/meta/total"), CLIENTS);
}
