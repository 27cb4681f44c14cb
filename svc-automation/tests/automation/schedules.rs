//! Flows that start on a schedule.

use chassis_testing::eventually;
use chrono::TimeDelta;
use proto::automation::{FlowPatch, StartFlowRequest, UpdateFlowRequest};
use serde_json::json;

use crate::support::World;

const DAILY: &str =
    "{name: Daily, trigger: {schedule: '0 9 * * *'}, steps: [{id: a, wait: {until: '2020-01-01'}}]}";
const RUNS: &str = "select count(*) from automation.run where trigger_type = 'schedule'";

#[tokio::test]
async fn a_scheduled_flow_starts_at_its_time_and_a_missed_time_is_made_up_for_once() {
    let world = World::working().await;
    let flow = world.apply(DAILY).await;
    // It is Sunday noon.
    let next = flow.meta.unwrap().next_start_at.unwrap();
    assert_eq!(chassis_base::time::from_timestamp(&next).unwrap().to_rfc3339(), "2026-11-16T08:00:00+00:00");
    world.clock.advance(TimeDelta::hours(21));
    eventually("the flow has started", async || world.count(RUNS).await == 1).await;
    let events = "select count(*) from automation.event where type = 'work.recurring'";
    assert_eq!(world.count(events).await, 1);
    world.clock.advance(TimeDelta::days(5));
    eventually("it has started once more", async || world.count(RUNS).await == 2).await;
    let due = "select count(*) from automation.flow where next_start_at = '2026-11-22T08:00:00Z'";
    assert_eq!(world.count(due).await, 1);
}

#[tokio::test]
async fn an_inactive_flow_does_not_start() {
    let world = World::working().await;
    let flow = world.apply(DAILY).await;
    let request = UpdateFlowRequest { id: flow.id, flow: Some(FlowPatch { active: Some(false) }) };
    let answer = world.flows().update_flow(world.caller.request(request)).await.unwrap().into_inner();
    assert!(answer.data.unwrap().meta.unwrap().next_start_at.is_none());
    assert_eq!(world.count("select count(*) from automation.flow where next_start_at is not null").await, 0);
}

#[tokio::test]
async fn a_scheduled_start_can_trigger_other_flows() {
    let world = World::working().await;
    world.apply(DAILY).await;
    world
        .apply("{name: L, trigger: {event: work.recurring}, steps: [{id: a, wait: {until: '2020-01-01'}}]}")
        .await;
    world.clock.advance(TimeDelta::days(1));
    let triggered =
        "select count(*) from automation.run where trigger_key = 'work.recurring' and status = 'success'";
    eventually("the other flow has run", async || world.count(triggered).await == 1).await;
}

#[tokio::test]
async fn a_person_can_start_any_flow() {
    let world = World::working().await;
    let flow = world.apply("{name: M, trigger: manual, steps: [{id: a, when: data.go, then: [{id: b, wait: {until: '2020-01-01'}}]}]}").await;
    let request =
        StartFlowRequest { id: flow.id, data: json!({"go": true}).to_string(), ..Default::default() };
    let started = world.flows().start_flow(world.caller.request(request)).await.unwrap().into_inner();
    world.until(&started.run_id, "success").await;
}
