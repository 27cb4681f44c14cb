use serde_json::{Value, json};

use crate::world::{User, World, id};

async fn subscription(user: &User, end: &str) -> Value {
    let body = json!({
        "client_id": user.client("Bakery").await, "title": "Hosting", "subscription_start": "2026-11-30",
        "subscription_end": end, "lines": [{"title": "Server", "unit_price": 10, "vat_code": "VAT0"}],
    });
    user.api.post("/v1/subscriptions", body).await.expect(201).at("/data")
}

#[tokio::test]
async fn a_subscription_near_its_end_is_told_once_for_each_end_date() {
    let world = World::new().await;
    let user = world.user().await;
    let created = subscription(&user, "2027-01-20").await;
    let stopped = subscription(&user, "2027-01-20").await;
    let end = json!({"subscription_end": "2027-01-20"});
    user.act("subscriptions", &stopped, "deactivate", end).await.expect(200);
    world.at("2026-12-20T22:59:00Z", &user).await;
    assert_eq!(world.entities_of(&user, "subscription.expiring").await, [""; 0], "31 days");
    world.at("2026-12-20T23:00:00Z", &user).await;
    let events = world.events(&user, "subscription.expiring").await;
    let [(entity, data)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(*entity, id(&created));
    for (name, value) in [
        ("id", created["id"].clone()),
        ("number", created["number"].clone()),
        ("title", json!("Hosting")),
        ("client_id", created["client_id"].clone()),
        ("status", json!("active")),
        ("end_date", json!("2027-01-20")),
        ("total_incl_vat", json!(10.0)),
        ("days", json!(30)),
    ] {
        assert_eq!(data[name], value, "{name}");
    }
    // Later, and back again: the first date was reported.
    user.patch("subscriptions", &created, json!({"subscription_end": "2027-03-01"})).await;
    world.at("2026-12-25T12:00:00Z", &user).await;
    user.patch("subscriptions", &created, json!({"subscription_end": "2027-01-20"})).await;
    world.at("2026-12-26T12:00:00Z", &user).await;
    assert_eq!(world.entities_of(&user, "subscription.expiring").await.len(), 1);
    user.patch("subscriptions", &created, json!({"subscription_end": "2027-03-01"})).await;
    world.at("2027-01-29T12:00:00Z", &user).await;
    assert_eq!(world.entities_of(&user, "subscription.expiring").await.len(), 1, "31 days");
    world.at("2027-01-30T12:00:00Z", &user).await;
    let events = world.events(&user, "subscription.expiring").await;
    assert_eq!((events.len(), &events[1].1["end_date"]), (2, &json!("2027-03-01")));
    world.at("2027-06-01T12:00:00Z", &user).await;
    assert_eq!(world.entities_of(&user, "subscription.expiring").await.len(), 2);
}
