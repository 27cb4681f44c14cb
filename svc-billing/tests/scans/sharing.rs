use chassis_testing::eventually;
use chrono::TimeDelta;
use serde_json::json;

use crate::world::{World, id};

#[tokio::test]
async fn a_threshold_holds_for_its_account_alone() {
    let world = World::new().await;
    let (hasty, other) = (world.user().await, world.user().await);
    world.set_threshold(&hasty, "document.draft", Some(1)).await;
    let draft = json!({"generation_mode": "draft"});
    let theirs = hasty.create("invoices", &hasty.client("C").await, draft.clone()).await;
    let others = other.create("invoices", &other.client("C").await, draft).await;
    for user in [&hasty, &other] {
        world.at("2026-11-16T12:00:00Z", user).await;
    }
    let events = world.events(&hasty, "document.draft").await;
    let [(entity, data)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((entity, &data["days"]), (&id(&theirs), &json!(1)));
    assert_eq!(world.entities_of(&other, "document.draft").await, [""; 0]);
    for user in [&hasty, &other] {
        world.at("2026-11-18T12:00:00Z", user).await;
    }
    assert_eq!(world.entities_of(&hasty, "document.draft").await.len(), 1);
    assert_eq!(world.entities_of(&other, "document.draft").await, [id(&others)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_workers_together_tell_everything_once() {
    let mut world = World::idle().await;
    let mut users = Vec::new();
    for _ in 0..4 {
        let user = world.user().await;
        let client = user.client("C").await;
        for _ in 0..3 {
            user.create("invoices", &client, json!({})).await;
        }
        users.push(user);
    }
    world.clock.advance(TimeDelta::days(60));
    for _ in 0..3 {
        world.add_replica().await;
    }
    for user in &users {
        eventually("all is reported", async || {
            // Leases are shared anew as time goes by.
            world.clock.advance(TimeDelta::milliseconds(200));
            world.entities_of(user, "customer.payment_overdue").await.len() >= 3
        })
        .await;
        world.look(user).await;
        for event in ["invoice.late", "customer.payment_overdue"] {
            assert_eq!(world.entities_of(user, event).await.len(), 3, "{event}");
        }
    }
}
