//! Two replicas as real processes, one of which is killed repeatedly while runs create clients in a real service.

#![allow(clippy::unwrap_used, reason = "a test stops where its fact is false")]

use chassis_base::Clock;
use chassis_service::Service;
use chassis_testing::{Process, TestCaller, TestDatabase, eventually, quiet_port};
use proto::automation::flow_service_client::FlowServiceClient;
use proto::automation::trigger_service_client::TriggerServiceClient;
use proto::automation::{ApplyFlowRequest, TriggerInput, TriggerRequest};
use svc_automation::Automation;
use svc_relations::Relations;
use tonic::transport::{Channel, Endpoint};

const ACCOUNTS: usize = 8;
const RUNS: usize = 25;
const KILLS: usize = 3;

const FLOW: &str = "
name: Two clients
trigger: {custom: go}
steps:
  - id: first
    call: {method: admin.relations.v1.ClientService/CreateClient, with: {client: {company_name: '{{ data.name }} 1'}}}
    retry: {max_attempts: 20, initial_backoff: 1s, max_backoff: 1s}
  - id: second
    call: {method: admin.relations.v1.ClientService/CreateClient, with: {client: {company_name: '{{ data.name }} 2'}}}
    retry: {max_attempts: 20, initial_backoff: 1s, max_backoff: 1s}
";

async fn count(database: &TestDatabase, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(&mut database.connect().await).await.unwrap()
}

/// Fires through a replica that is not killed.
async fn fire(channel: &Channel, caller: &TestCaller, name: String) {
    let data = serde_json::json!({"name": name}).to_string();
    let trigger = TriggerInput { event: "go".into(), data, ..TriggerInput::default() };
    let request = caller.request(TriggerRequest { trigger: Some(trigger) });
    let answer = TriggerServiceClient::new(channel.clone()).trigger(request).await.unwrap();
    assert_eq!(answer.into_inner().data.unwrap().matched, 1);
}

/// Waits until so many runs have succeeded; fails with the error of one that has not.
async fn all_succeed(database: &TestDatabase, total: i64) {
    let mut connection = database.connect().await;
    eventually("all runs have succeeded", async || {
        let failed = "select error from automation.run where status = 'failed' limit 1";
        let failed: Option<String> =
            sqlx::query_scalar(failed).fetch_optional(&mut connection).await.unwrap();
        assert_eq!(failed, None, "a run has failed");
        count(database, "select count(*) from automation.run where status = 'success'").await == total
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_replicas_lose_no_run_and_duplicate_no_effect() {
    let schemas = [(Automation::NAME, Automation::migrations()), (Relations::NAME, Relations::migrations())];
    let (database, clock) = (TestDatabase::new(&schemas).await, Clock::system());
    let relations = chassis_testing::start::<Relations>(database.url(), &clock).await;
    let peers = format!("relations={}", relations.url());
    let flags = ["--database-url", database.url(), "--peers", &peers];
    let binary = env!("CARGO_BIN_EXE_svc-automation");
    let mut replicas = Vec::new();
    for _ in 0..2 {
        let listen = quiet_port();
        replicas.push(Process::start(binary, listen, &flags));
        // Only then the next look for a free port cannot find the same one.
        eventually("the replica listens", async || tokio::net::TcpStream::connect(listen).await.is_ok())
            .await;
    }
    // Serves requests only, so that none is lost with a killed replica.
    let api = chassis_testing::start::<Automation>(database.url(), &clock).await;
    let channel = Endpoint::from_shared(api.url()).unwrap().connect_lazy();
    let callers: Vec<TestCaller> =
        (0..ACCOUNTS).map(|_| TestCaller::mesh(&chassis_testing::account(), &clock)).collect();
    for caller in &callers {
        let request = ApplyFlowRequest { definition: FLOW.into(), active: Some(true) };
        FlowServiceClient::new(channel.clone()).apply_flow(caller.request(request)).await.unwrap();
    }
    let begun = "select count(*) from automation.run_step";
    let mut total = 0;
    for round in 0..=KILLS {
        // A run that is rendered during two kills is failed, because it may have been the cause. So each round waits for
        // all runs of the rounds before.
        all_succeed(&database, total).await;
        let before = count(&database, begun).await;
        for number in (0..RUNS).filter(|number| number % (KILLS + 1) == round) {
            for (index, caller) in callers.iter().enumerate() {
                fire(&channel, caller, format!("{index}-{number}")).await;
                total += 1;
            }
        }
        if round < KILLS {
            eventually("work goes on", async || count(&database, begun).await > before).await;
            replicas[round % 2].kill_and_restart();
        }
    }
    all_succeed(&database, total).await;
    assert_eq!(count(&database, "select count(*) from relations.relation").await, 2 * total);
    let distinct =
        "select count(*) from (select distinct account_id, company_name from relations.relation) names";
    assert_eq!(count(&database, distinct).await, 2 * total, "each once");
}
