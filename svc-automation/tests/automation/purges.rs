//! What is deleted with time, and what stays.

use chassis_testing::eventually;
use chrono::TimeDelta;
use proto::automation::ListRunsRequest;
use serde_json::json;

use crate::support::World;

const RUNS: &str = "select count(*) from automation.run";

#[tokio::test]
async fn a_run_is_deleted_ninety_days_after_its_end_and_not_while_it_waits() {
    let mut world = World::idle().await;
    world.apply("{name: W, trigger: {custom: go}, steps: [{id: a, wait: {for: 1d}}]}").await;
    let ended = world.start("go", &json!({})).await;
    world.cancel(&ended).await.unwrap();
    world.clock.advance(TimeDelta::days(2));
    let late = world.start("go", &json!({})).await;
    world.cancel(&late).await.unwrap();
    world.apply("{name: A, trigger: {custom: ask}, steps: [{id: a, approve: {title: '?'}}]}").await;
    let open = world.start("ask", &json!({})).await;
    world.clock.advance(TimeDelta::days(89));
    world.service = Some(world.another().await);
    eventually("the oldest is deleted", async || world.count(RUNS).await == 2).await;
    let logged = "select count(*) from automation.log where kind = 'run' and change = 'deleted'";
    assert_eq!(world.count(logged).await, 1);
    world.until(&open, "pending_approval").await;
    assert_eq!(world.run(&late).await.status, "cancelled");
    let listed = world.runs().list_runs(world.caller.request(ListRunsRequest::default())).await.unwrap();
    assert_eq!(listed.into_inner().meta.unwrap().total, 2, "what is counted is what is there");
    chassis_testing::assert_filters_counted(&world.database, "run", "automation.run", "true").await;
}

#[tokio::test]
async fn an_event_is_deleted_after_thirty_days() {
    let mut world = World::idle().await;
    world.fire("a.b", &json!({})).await;
    world.clock.advance(TimeDelta::days(31));
    world.fire("a.c", &json!({})).await;
    world.service = Some(world.another().await);
    let events = "select count(*) from automation.event";
    eventually("the old one is deleted", async || world.count(events).await == 1).await;
    assert_eq!(world.count("select count(*) from automation.event where type = 'a.c'").await, 1);
}
