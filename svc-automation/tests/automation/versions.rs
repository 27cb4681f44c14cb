//! Versions of flows and runs: one more with every change that they show, and the log shows each.

use chassis_testing::eventually;
use chrono::TimeDelta;
use proto::automation::{
    ApproveRunRequest, Decision, Flow, FlowPatch, GetFlowDefinitionRequest, GetFlowRequest, ListRunsRequest,
    RestartFrom, RestartRunRequest, Run, UpdateFlowRequest,
};
use serde_json::json;
use tonic::{Code, Status};

use crate::support::{MAKE_CLIENT, Receiver, World, outcomes};

impl World {
    async fn switch(&self, id: &str, active: bool) -> Flow {
        let patch = FlowPatch { active: Some(active) };
        let request = UpdateFlowRequest { id: id.to_owned(), flow: Some(patch) };
        self.flows().update_flow(self.caller.request(request)).await.unwrap().into_inner().data.unwrap()
    }

    /// The flow as its GET and the log show it, in this version.
    async fn flow_in_version(&self, id: &str, version: i64) -> Flow {
        let request = self.caller.request(GetFlowRequest { id: id.to_owned() });
        let flow = self.flows().get_flow(request).await.unwrap().into_inner().data.unwrap();
        let meta = flow.meta.as_ref().unwrap();
        assert_eq!((meta.version, meta.updated_at), (version, flow.updated_at));
        self.assert_logged("flow", id, version, &flow).await;
        flow
    }

    /// The run as its GET and the log show it, in this version.
    async fn run_in_version(&self, id: &str, version: i64) -> Run {
        let run = self.run(id).await;
        let meta = run.meta.as_ref().unwrap();
        assert_eq!((meta.version, meta.updated_at), (version, run.updated_at), "{run:?}");
        self.assert_logged("run", id, version, &run).await;
        run
    }

    async fn definition(&self, id: &str, version: i64) -> Result<String, Status> {
        let request = self.caller.request(GetFlowDefinitionRequest { id: id.to_owned(), version });
        Ok(self.flows().get_flow_definition(request).await?.into_inner().definition)
    }
}

#[tokio::test]
async fn every_change_of_a_flow_is_a_version_and_each_has_a_definition() {
    let world = World::idle().await;
    let id = world.apply(MAKE_CLIENT).await.id;
    let first = world.flow_in_version(&id, 1).await;
    world.clock.advance(TimeDelta::minutes(1));
    world.apply(MAKE_CLIENT).await;
    world.switch(&id, true).await;
    assert_eq!(world.flow_in_version(&id, 1).await, first, "nothing has changed");
    let off = world.switch(&id, false).await;
    assert_eq!(off, world.flow_in_version(&id, 2).await);
    assert_ne!(off.updated_at, first.updated_at);
    let changed = MAKE_CLIENT.replace("{{ data.name }}", "{{ data.name }} B.V.");
    let applied = world.apply(&changed).await;
    assert_eq!(applied, world.flow_in_version(&id, 3).await, "on again and changed is one change");
    for (version, text) in [(0, &*changed), (1, MAKE_CLIENT), (2, MAKE_CLIENT), (3, &changed)] {
        assert_eq!(world.definition(&id, version).await.unwrap(), text, "{version}");
    }
    assert_eq!(world.definition(&id, 4).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn copies_of_a_definition_are_for_the_release_before_and_go_after_an_hour() {
    let world = World::working().await;
    let id = world.apply(MAKE_CLIENT).await.id;
    let current =
        "select count(*) from automation.flow join automation.flow_version using (account_id, version)
                   where flow_id = flow.id and copied";
    let copies = "select count(*) from automation.flow_version where copied";
    world.switch(&id, false).await;
    world.switch(&id, true).await;
    assert_eq!((world.count(current).await, world.count(copies).await), (1, 2));
    world.clock.advance(TimeDelta::hours(2));
    world.switch(&id, false).await;
    world.switch(&id, true).await;
    assert_eq!((world.count(current).await, world.count(copies).await), (1, 2), "the old ones are gone");
    assert_eq!(world.definition(&id, 2).await.unwrap(), MAKE_CLIENT);
    world.execute("delete from automation.flow_version where copied").await;
    let run = world.start("make.client", &json!({"name": "Bakery"})).await;
    assert_eq!(world.until(&run, "success").await.meta.unwrap().flow_version, 5);
}

#[tokio::test]
async fn a_scheduled_start_is_a_change_of_its_flow() {
    let world = World::working().await;
    let daily =
        "{name: Daily, trigger: {schedule: '0 9 * * *'}, steps: [{id: a, wait: {until: '2020-01-01'}}]}";
    let id = world.apply(daily).await.id;
    let before = world.flow_in_version(&id, 1).await.meta.unwrap().next_start_at;
    world.clock.advance(TimeDelta::days(1));
    eventually("the flow has started", async || {
        world.count("select count(*) from automation.run").await == 1
    })
    .await;
    let after = world.flow_in_version(&id, 2).await.meta.unwrap().next_start_at;
    assert!(before.is_some() && after.is_some() && before != after);
}

#[tokio::test]
async fn every_progress_of_a_run_is_a_version_with_its_steps() {
    let mut world = World::idle().await;
    world.apply(&format!("{MAKE_CLIENT}\n  - {{id: ask, approve: {{title: '?'}}}}\n")).await;
    let id = world.start("make.client", &json!({"name": "Bakery"})).await;
    world.run_in_version(&id, 1).await;
    world.service = Some(world.another().await);
    world.until(&id, "pending_approval").await;
    // The call has begun and ended, and the question was asked. Renderings are counted, and not shown.
    let asked = world.run_in_version(&id, 4).await;
    assert_eq!(outcomes(&asked), [("make", "done"), ("ask", "pending")]);
    world.clock.advance(TimeDelta::minutes(1));
    let decision = Decision { who: "Sanne".into(), why: "Fair".into(), step: String::new() };
    let request = ApproveRunRequest { id: id.clone(), decision: Some(decision) };
    let approved = world.runs().approve_run(world.caller.request(request)).await.unwrap().into_inner();
    assert_eq!(approved.data.unwrap(), world.run_in_version(&id, 5).await);
    let listed = world.runs().list_runs(world.caller.request(ListRunsRequest::default())).await.unwrap();
    let listed = listed.into_inner().data.remove(0).meta.unwrap();
    assert_eq!((listed.version, listed.steps.len()), (5, 0));
}

#[tokio::test]
async fn a_run_that_is_cancelled_during_a_request_shows_the_result_in_one_more_version() {
    let (world, receiver) = (World::working().await, Receiver::start().await);
    world
        .apply(&format!(
            "{{name: Out, trigger: {{custom: go}}, steps: [{{id: send, http: {{url: '{}'}}}}]}}",
            receiver.url
        ))
        .await;
    receiver.close();
    let id = world.start("go", &json!({})).await;
    receiver.until_got(1).await;
    world.cancel(&id).await.unwrap();
    world.run_in_version(&id, 3).await;
    world.cancel(&id).await.unwrap();
    world.run_in_version(&id, 3).await;
    receiver.open();
    eventually("the result is shown", async || outcomes(&world.run(&id).await) == [("send", "done")]).await;
    assert_eq!(world.run_in_version(&id, 4).await.status, "cancelled");
    let others = "select count(*) from automation.log where kind not in ('flow', 'run', 'signing_secret')";
    assert_eq!(world.count(others).await, 0, "what a cancellation answers is no record");
}

#[tokio::test]
async fn a_run_that_is_continued_goes_on_with_its_versions() {
    let (world, receiver) = (World::working().await, Receiver::start().await);
    receiver.answer(&[400]);
    world
        .apply(&format!(
            "{{name: Out, trigger: {{custom: go}}, steps: [{{id: send, http: {{url: '{}'}}}}]}}",
            receiver.url
        ))
        .await;
    let id = world.start("go", &json!({})).await;
    world.until(&id, "failed").await;
    world.run_in_version(&id, 3).await;
    let restart = async |from: RestartFrom| {
        let request = RestartRunRequest { id: id.clone(), from: from.into() };
        world.runs().restart_run(world.caller.request(request)).await.unwrap().into_inner().data.unwrap()
    };
    assert_eq!(restart(RestartFrom::FailedStep).await.meta.unwrap().version, 4);
    world.until(&id, "success").await;
    world.run_in_version(&id, 6).await;
    let anew = restart(RestartFrom::Start).await;
    assert_eq!(anew.meta.unwrap().version, 1);
    world.until(&anew.id, "success").await;
    world.run_in_version(&anew.id, 3).await;
    world.run_in_version(&id, 6).await;
}

#[tokio::test]
async fn a_wait_is_shown_as_it_is_stored() {
    let world = World::working().await;
    let until = (world.clock.now() + TimeDelta::days(1)).format("%Y-%m-%dT%H:%M:%S.123456789Z");
    world
        .apply(&format!(
            "{{name: W, trigger: {{custom: go}}, steps: [{{id: a, wait: {{until: '{until}'}}}}]}}"
        ))
        .await;
    let id = world.start("go", &json!({})).await;
    world.until(&id, "waiting").await;
    let run = world.run_in_version(&id, 2).await;
    assert_eq!(run.next_attempt_at.unwrap().nanos, 123_000_000);
}
