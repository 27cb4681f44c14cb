//! Calls of other services: each has its effect once, whatever happens, and transient failures are retried.

use chrono::TimeDelta;
use serde_json::json;
use svc_automation::Automation;
use svc_relations::Relations;

use crate::support::{MAKE_CLIENT, World, outcomes};

#[tokio::test]
async fn a_call_is_made_and_its_answer_is_there_for_later_steps() {
    let world = World::working().await;
    world.apply(&(MAKE_CLIENT.to_owned() + "
  - id: rename
    call:
      method: admin.relations.v1.ClientService/UpdateClient
      with: {id: '{{ steps.make.answer.data.id }}', client: {city: '{{ steps.make.answer.data.company_name | upper }}'}}
")).await;
    let id = world.start("make.client", &json!({"name": "Bakery"})).await;
    let run = world.until(&id, "success").await;
    assert_eq!(outcomes(&run), [("make", "done"), ("rename", "done")]);
    assert_eq!((run.actions_done, run.error.as_str()), (2, ""));
    let city = "select count(*) from relations.relation where city = 'BAKERY' and company_name = 'Bakery'";
    assert_eq!(world.count(city).await, 1);
}

#[tokio::test]
async fn two_hundred_runs_each_have_their_effect_once() {
    let world = World::working().await;
    world.apply(MAKE_CLIENT).await;
    for number in 0..200 {
        world.fire("make.client", &json!({"name": format!("Client {number}")})).await;
    }
    let done = "select count(*) from automation.run where status = 'success'";
    chassis_testing::eventually("all runs have succeeded", async || world.count(done).await == 200).await;
    assert_eq!(world.clients().await, 200);
    chassis_testing::assert_filters_counted(&world.database, "run", "automation.run", "true").await;
    assert_eq!(world.count("select count(distinct company_name) from relations.relation").await, 200);
}

/// As if the process had died between the response and the transaction that records it.
#[tokio::test]
async fn a_call_whose_answer_was_lost_is_not_made_twice() {
    let world = World::working().await;
    world.apply(MAKE_CLIENT).await;
    let id = world.start("make.client", &json!({"name": "Bakery"})).await;
    world.until(&id, "success").await;
    world.execute("update automation.run_step set outcome = 'running', answer = null, ended_at = null").await;
    world
        .execute("update automation.run set status = 'running', finished_at = null, next_at = created_at, actions_done = 0")
        .await;
    let run = world.until(&id, "success").await;
    assert_eq!(run.meta.unwrap().steps[0].attempts, 2);
    assert_eq!(world.clients().await, 1);
}

#[tokio::test]
async fn after_a_day_a_lost_call_is_not_repeated_but_reported() {
    let world = World::working().await;
    world.apply(MAKE_CLIENT).await;
    let id = world.start("make.client", &json!({"name": "Bakery"})).await;
    world.until(&id, "success").await;
    world.clock.advance(TimeDelta::hours(25));
    world.execute("update automation.run_step set outcome = 'running', answer = null, ended_at = null").await;
    world
        .execute("update automation.run set status = 'running', finished_at = null, next_at = created_at")
        .await;
    let run = world.until(&id, "failed").await;
    assert!(run.error.contains("not known"), "{}", run.error);
    assert_eq!(world.clients().await, 1);
}

#[tokio::test]
async fn what_the_service_refuses_fails_without_a_retry_and_says_why() {
    let world = World::working().await;
    world.apply(MAKE_CLIENT).await;
    let id = world.start("make.client", &json!({"name": "x".repeat(300)})).await;
    let run = world.until(&id, "failed").await;
    assert_eq!((run.attempts, run.max_attempts), (1, 5));
    assert!(run.error.contains("company_name"), "{}", run.error);
    let id = world.start("make.client", &json!({})).await;
    let run = world.until(&id, "failed").await;
    assert!(run.error.contains("data.name"), "{}", run.error);
}

#[tokio::test]
async fn an_unavailable_service_is_retried_and_not_for_ever() {
    let mut world = World::idle().await;
    let unused = "relations=http://127.0.0.1:1";
    let flags = ["--peers", unused];
    world.service =
        Some(chassis_testing::start_working::<Automation>(world.database.url(), &world.clock, &flags).await);
    world.apply(MAKE_CLIENT).await;
    let id = world.start("make.client", &json!({"name": "Bakery"})).await;
    for attempt in 1..5 {
        let run = world.until(&id, "retrying").await;
        assert!(run.next_attempt_at.is_some());
        chassis_testing::eventually("an attempt", async || world.run(&id).await.attempts >= attempt).await;
        world.clock.advance(TimeDelta::minutes(11));
        chassis_testing::eventually("the next attempt", async || world.run(&id).await.attempts > attempt)
            .await;
    }
    let run = world.until(&id, "failed").await;
    assert_eq!((run.attempts, run.max_attempts), (5, 5));
}

#[tokio::test]
async fn a_step_that_may_fail_makes_the_run_partial() {
    let world = World::working().await;
    world
        .apply(
            "
name: Lenient
trigger: {custom: go}
steps:
  - id: lost
    on_error: continue
    call: {method: admin.relations.v1.ClientService/GetClient, with: {id: nobody}}
  - id: after
    when: steps.lost.outcome == 'failed'
    then:
      - id: make
        call: {method: admin.relations.v1.ClientService/CreateClient, with: {client: {company_name: B}}}
",
        )
        .await;
    let id = world.start("go", &json!({})).await;
    let run = world.until(&id, "partial").await;
    assert_eq!(outcomes(&run), [("lost", "failed"), ("after", "done"), ("make", "done")]);
    assert!(!run.error.is_empty());
}

#[tokio::test]
async fn a_flow_that_starts_itself_is_stopped() {
    let mut world = World::idle().await;
    // The first relations is called and cannot reach automation; the second one delivers the events of both.
    let nowhere = ["--listeners", "automation=http://127.0.0.1:1"];
    let called = chassis_testing::start_with::<Relations>(world.database.url(), &world.clock, &nowhere).await;
    let peers = format!("relations={}", called.url());
    let flags = ["--peers", peers.as_str()];
    let automation =
        chassis_testing::start_working::<Automation>(world.database.url(), &world.clock, &flags).await;
    let listeners = format!("automation={}", automation.url());
    let flags = ["--listeners", listeners.as_str()];
    let _relay =
        chassis_testing::start_working::<Relations>(world.database.url(), &world.clock, &flags).await;
    world.service = Some(automation);
    world
        .apply(
            "
name: Circle
trigger: {event: customer.created}
steps:
  - id: another
    call: {method: admin.relations.v1.ClientService/CreateClient, with: {client: {company_name: Again}}}
",
        )
        .await;
    world.fire("customer.created", &json!({})).await;
    let refused = "select count(*) from automation.run where status = 'failed' and error like '%in a row%'";
    chassis_testing::eventually("the circle is broken", async || world.count(refused).await == 1).await;
    assert_eq!(world.count("select count(*) from automation.run where status = 'success'").await, 8);
    assert_eq!(world.clients().await, 8);
}
