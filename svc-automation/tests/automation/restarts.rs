//! Restarts of runs.

use proto::automation::{RestartFrom, RestartRunRequest, Run};
use serde_json::json;
use tonic::Status;

use crate::support::{MAKE_CLIENT, Receiver, World, outcomes, problem};

impl World {
    async fn restart(&self, id: &str, from: RestartFrom) -> Result<Run, Status> {
        let request = RestartRunRequest { id: id.to_owned(), from: from.into() };
        Ok(self.runs().restart_run(self.caller.request(request)).await?.into_inner().data.unwrap())
    }
}

fn flow(receiver: &Receiver) -> String {
    format!(
        "{MAKE_CLIENT}\n  - {{id: tell, http: {{url: '{}'}}, retry: {{max_attempts: 1}}}}\n",
        receiver.url
    )
}

#[tokio::test]
async fn a_failed_run_continues_from_its_failed_step() {
    let (world, receiver) = (World::working().await, Receiver::start().await);
    receiver.answer(&[500]);
    world.apply(&flow(&receiver)).await;
    let id = world.start("make.client", &json!({"name": "Bakery"})).await;
    world.until(&id, "failed").await;
    world.restart(&id, RestartFrom::FailedStep).await.unwrap();
    let run = world.until(&id, "success").await;
    assert_eq!(outcomes(&run), [("make", "done"), ("tell", "done")]);
    assert_eq!((world.clients().await, run.actions_done), (1, 2));
    let got = receiver.got();
    assert_eq!(got[0].header("webhook-id"), got[1].header("webhook-id"));
}

#[tokio::test]
async fn a_run_that_is_started_anew_is_another_one() {
    let (world, receiver) = (World::working().await, Receiver::start().await);
    receiver.answer(&[400]);
    world.apply(&flow(&receiver)).await;
    let id = world.start("make.client", &json!({"name": "Bakery"})).await;
    world.until(&id, "failed").await;
    let again = world.restart(&id, RestartFrom::Start).await.unwrap().id;
    assert_ne!(again, id);
    world.until(&again, "success").await;
    assert_eq!((world.clients().await, world.run(&id).await.status.as_str()), (2, "failed"));
}

#[tokio::test]
async fn a_run_that_has_not_failed_is_not_restarted() {
    let world = World::working().await;
    world.apply("{name: W, trigger: {custom: go}, steps: [{id: a, wait: {for: 1d}}]}").await;
    let id = world.start("go", &json!({})).await;
    world.until(&id, "waiting").await;
    for from in [RestartFrom::FailedStep, RestartFrom::Start] {
        assert_eq!(problem(&world.restart(&id, from).await.unwrap_err()), "run_state");
    }
    let run = world.restart(&id, RestartFrom::Unspecified).await.unwrap_err();
    assert_eq!(chassis_testing::faults(&run), [crate::support::fault("/from", "required")]);
}

#[tokio::test]
async fn a_run_keeps_the_version_that_it_started_with() {
    let world = World::working().await;
    let flow = |steps: &str| format!("{{name: V, trigger: {{custom: go}}, steps: [{steps}]}}");
    world.apply(&flow("{id: a, wait: {for: 1d}}, {id: old, wait: {until: '2020-01-01'}}")).await;
    let id = world.start("go", &json!({})).await;
    world.until(&id, "waiting").await;
    world.apply(&flow("{id: b, wait: {for: 1d}}")).await;
    world.clock.advance(chrono::TimeDelta::days(2));
    let run = world.until(&id, "success").await;
    assert_eq!(outcomes(&run), [("a", "done"), ("old", "done")]);
}
