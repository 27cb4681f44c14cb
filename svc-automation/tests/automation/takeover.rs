//! Replicas that die in the middle of a run, and those that continue it.

use chrono::TimeDelta;
use serde_json::json;

use crate::support::{MAKE_CLIENT, Receiver, World, outcomes};

fn flow(receiver: &Receiver) -> String {
    format!("{MAKE_CLIENT}\n  - {{id: tell, http: {{url: '{}'}}, timeout: 60s}}\n", receiver.url)
}

#[tokio::test]
async fn a_run_of_a_killed_replica_continues_where_it_was() {
    let (mut world, receiver) = (World::idle().await, Receiver::start().await);
    receiver.close();
    let killed = world.another().await;
    world.apply(&flow(&receiver)).await;
    let id = world.start("make.client", &json!({"name": "Bakery"})).await;
    receiver.until_got(1).await;
    assert_eq!(world.clients().await, 1, "the first step is done, the second one begun");
    drop(killed);
    world.clock.advance(TimeDelta::seconds(16));
    receiver.open();
    world.service = Some(world.another().await);
    let run = world.until(&id, "success").await;
    assert_eq!(outcomes(&run), [("make", "done"), ("tell", "done")]);
    let steps = run.meta.unwrap().steps;
    assert_eq!((steps[0].attempts, steps[1].attempts), (1, 2), "what was done is not done again");
    assert_eq!(world.clients().await, 1);
    let got = receiver.got();
    assert_eq!(got[0].header("webhook-id"), got[1].header("webhook-id"));
}

#[tokio::test]
async fn a_replica_that_has_lost_its_lease_changes_nothing() {
    let (world, receiver) = (World::working().await, Receiver::start().await);
    receiver.close();
    world.apply(&flow(&receiver)).await;
    let id = world.start("make.client", &json!({"name": "Bakery"})).await;
    receiver.until_got(1).await;
    // As if another replica had taken over while this one was paused.
    world
        .execute(
            "update automation.lease set owner = '00000000-0000-0000-0000-000000000001', fence = fence + 1
             where worker = 'runs'",
        )
        .await;
    receiver.open();
    // The response comes to a process that may not record it; the next owner repeats the request.
    receiver.until_got(1).await;
    assert_eq!(world.run(&id).await.status, "running");
    world.clock.advance(TimeDelta::seconds(16));
    let run = world.until(&id, "success").await;
    assert_eq!(run.meta.unwrap().steps[1].attempts, 2);
    assert_eq!(receiver.got().len(), 2);
}

#[tokio::test]
async fn a_step_whose_process_dies_each_time_is_failed() {
    let (mut world, receiver) = (World::idle().await, Receiver::start().await);
    receiver.close();
    world.apply(&flow(&receiver).replace("timeout: 60s", "timeout: 60s, retry: {max_attempts: 2}")).await;
    let id = world.start("make.client", &json!({"name": "Bakery"})).await;
    for attempt in 1..=2 {
        let killed = world.another().await;
        receiver.until_got(attempt).await;
        drop(killed);
        world.clock.advance(TimeDelta::seconds(16));
    }
    world.service = Some(world.another().await);
    let run = world.until(&id, "failed").await;
    assert!(run.error.contains("ended each time"), "{}", run.error);
    assert_eq!(receiver.got().len(), 2);
}
