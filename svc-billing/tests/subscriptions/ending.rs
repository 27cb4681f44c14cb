use chassis_testing::{assert_filters_counted, expected_faults};
use http::Method;
use serde_json::{Value, json};

use crate::support::{World, path};

#[tokio::test]
async fn deactivating_ends_today_by_default_and_only_once() {
    let world = World::new().await;
    let user = world.user().await;
    let created = user.hosting(json!({})).await;
    let ended = user.act(&created, "deactivate", json!({})).await.expect(200);
    let expected = json!({"id": created["id"], "status": "ended", "end_date": "2026-11-15"});
    assert_eq!(ended.at("/data"), expected);
    world.move_to("2026-11-20T12:00:00Z");
    for body in [json!({}), json!({"subscription_end": "2026-12-31"})] {
        assert_eq!(user.act(&created, "deactivate", body).await.expect(200).at("/data"), expected);
    }
    assert_eq!(user.get(&created).await["next_generate"], Value::Null);

    let other = user.hosting(json!({})).await;
    let path = format!("{}/deactivate", path(&other));
    let answer = user.api.send(Method::POST, &path, &[], "").await.expect(200);
    assert_eq!(answer.at("/data/end_date"), "2026-11-20", "no body is needed");
    let draft = user.create(json!({})).await;
    let ended = user.act(&draft, "deactivate", json!({"subscription_end": "2026-12-31"})).await.expect(200);
    assert_eq!((ended.at("/data/status"), ended.at("/data/end_date")), (json!("ended"), json!("2026-12-31")));
    let answer = user.act(&draft, "deactivate", json!({"subscription_end": "soon"})).await.expect(422);
    assert_eq!(answer.faults(), expected_faults(&[("/subscription_end", "not_a_date")]));
}

#[tokio::test]
async fn dates_up_to_the_end_are_still_billed_and_none_after() {
    let world = World::working(1).await;
    let user = world.user().await;
    let created = user.hosting(json!({})).await;
    let end = json!({"subscription_end": "2026-12-30"});
    user.act(&created, "deactivate", end).await.expect(200);
    world.move_to("2027-03-01T12:00:00Z");
    world.settled(&user).await;
    assert_eq!(user.dates(&created).await, ["2026-11-30", "2026-12-30"]);
    let full = user.get(&created).await;
    let shown = ["status", "last_generated", "next_generate"].map(|name| full[name].clone());
    assert_eq!(shown, [json!("ended"), json!("2026-12-30"), Value::Null]);
}

#[tokio::test]
async fn a_subscription_ends_by_itself_when_its_end_has_passed() {
    let world = World::working(1).await;
    let user = world.user().await;
    let created = user.hosting(json!({"subscription_end": "2026-12-30"})).await;
    world.move_to("2026-12-30T12:00:00Z");
    world.settled(&user).await;
    assert_eq!(user.dates(&created).await, ["2026-11-30", "2026-12-30"], "the last day is included");
    assert_eq!(user.get(&created).await["status"], "active");
    world.move_to("2026-12-30T23:00:00Z");
    world.settled(&user).await;
    assert_eq!(user.get(&created).await["status"], "ended", "31 December has begun in Amsterdam");
    let yearly = user.create(json!({})).await;
    user.patch(&yearly, json!({"frequency": "yearly"})).await.expect(200);
    assert_filters_counted(&world.database, "subscription", "billing.subscription", "true").await;
}

#[tokio::test]
async fn it_cannot_end_before_its_last_invoice() {
    let world = World::working(1).await;
    let user = world.user().await;
    let created = user.hosting(json!({"subscription_start": "2026-11-15"})).await;
    world.settled(&user).await;
    assert_eq!(user.dates(&created).await, ["2026-11-15"]);
    let early = json!({"subscription_end": "2026-11-14"});
    let refused = expected_faults(&[("/subscription_end", "conflicting")]);
    let earlier_start = json!({"subscription_end": "2026-11-14", "subscription_start": "2026-11-01"});
    assert_eq!(user.patch(&created, earlier_start).await.expect(422).faults(), refused);
    assert_eq!(user.act(&created, "deactivate", early).await.expect(422).faults(), refused);
    let today = json!({"subscription_end": "2026-11-15"});
    user.act(&created, "deactivate", today).await.expect(200);
}
