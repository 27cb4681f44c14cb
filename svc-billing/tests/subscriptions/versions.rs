//! A subscription counts its changes, also those in the background, and the log has it as it is shown.

use serde_json::{Value, json};

use crate::support::World;

#[tokio::test]
async fn a_subscription_counts_its_changes() {
    let world = World::new().await;
    let user = world.user().await;
    let draft = user.hosting(json!({"subscription_start": null})).await;
    assert_eq!((&draft["meta"]["version"], world.version(&user, &draft).await), (&json!(1), 1));
    world.move_to("2026-11-16T09:00:00Z");
    for (body, version) in [
        (json!({}), 1),
        (json!({"title": "Hosting"}), 1),
        (json!({"title": "Mail", "day_of_month": 3}), 2),
        (json!({"lines": [{"title": "A", "quantity": "1.50", "unit_price": "2.5"}, {"title": "B"}]}), 3),
        (json!({"title": "Mail"}), 3),
    ] {
        let changed = user.patch(&draft, body.clone()).await.expect(200).at("/data/meta/version");
        assert_eq!((changed, world.version(&user, &draft).await), (json!(version), version), "{body}");
    }
    for (action, version) in [("activate", 4), ("activate", 4), ("deactivate", 5), ("deactivate", 5)] {
        user.act(&draft, action, json!({})).await;
        assert_eq!(world.version(&user, &draft).await, version, "{action}");
    }
}

#[tokio::test]
async fn an_invoice_and_the_end_are_changes_of_the_subscription() {
    let world = World::working(1).await;
    let user = world.user().await;
    let created = user.hosting(json!({"subscription_end": "2026-12-01"})).await;
    world.move_to("2026-11-30T12:00:00Z");
    world.settled(&user).await;
    assert_eq!(user.get(&created).await["last_generated"], "2026-11-30");
    assert_eq!(world.version(&user, &created).await, 2);
    world.move_to("2026-12-02T12:00:00Z");
    world.settled(&user).await;
    assert_eq!(user.get(&created).await["status"], "ended");
    assert_eq!(world.version(&user, &created).await, 3);
}

#[tokio::test]
async fn a_failure_is_a_change_once() {
    let world = World::working(1).await;
    let user = world.user().await;
    let created = user.hosting(json!({"subscription_start": "2026-11-20"})).await;
    let client = created["client_id"].as_str().unwrap();
    let mut connection = world.database.connect().await;
    let hide = "update relations.relation set role = 'supplier' where id = $1::uuid";
    sqlx::query(hide).bind(client).execute(&mut connection).await.unwrap();
    for (time, failures) in [("2026-11-20T12:00:00Z", 1), ("2026-11-20T13:00:00Z", 2)] {
        world.move_to(time);
        world.settled(&user).await;
        let failed: i32 = sqlx::query_scalar("select failures from billing.subscription")
            .fetch_one(&mut connection)
            .await
            .unwrap();
        assert_eq!((failed, world.version(&user, &created).await), (failures, 2));
    }
    let show = "update relations.relation set role = 'client' where id = $1::uuid";
    sqlx::query(show).bind(client).execute(&mut connection).await.unwrap();
    world.move_to("2026-11-20T18:00:00Z");
    world.settled(&user).await;
    assert_eq!(user.get(&created).await["meta"]["last_error"], Value::Null);
    assert_eq!(world.version(&user, &created).await, 3);
}
