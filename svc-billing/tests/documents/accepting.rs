use chrono::TimeDelta;
use serde_json::json;

use crate::support::{World, conflict, id, priced};

#[tokio::test]
async fn a_quote_is_accepted_once_and_becomes_final() {
    let world = World::new().await;
    let user = world.user().await;
    let body = json!({"title": "T", "client_id": user.client("C").await, "rows": priced(&[5])});
    let quote = user.create("quotes", body).await;
    let accepted = user.act("quotes", &quote, "accept", json!({})).await.expect(200);
    let document = accepted.at("/data");
    for (name, value) in
        [("payment_status", "accepted"), ("number", "QUO-2026-00001"), ("generation_mode", "final")]
    {
        assert_eq!(document[name], value);
    }
    assert_eq!(document["meta"]["accepted_at"], "2026-11-15T11:00:00.123Z");
    assert_eq!(document["pdf"]["status"], "ready");
    world.clock.advance(TimeDelta::days(100));
    let again = user.act("quotes", &quote, "accept", json!({})).await.expect(200);
    assert_eq!(again.body, accepted.body);
    assert_eq!(user.get("quotes", &quote).await, document);
}

#[tokio::test]
async fn only_a_quote_with_a_client_is_accepted() {
    let world = World::new().await;
    let user = world.user().await;
    let quote = user.create("quotes", json!({"title": "T"})).await;
    assert_eq!(conflict(user.act("quotes", &quote, "accept", json!({})).await), "incomplete");
    let invoice = user.create("invoices", json!({"title": "T"})).await;
    user.api.post(&format!("/v1/quotes/{}/accept", id(&invoice)), json!({})).await.expect(404);
    user.api.post("/v1/quotes/nonsense/accept", json!({})).await.expect(404);
    assert_eq!(user.get("quotes", &quote).await, quote);
}

#[tokio::test]
async fn a_quote_whose_status_was_changed_by_hand_is_accepted_again() {
    let world = World::new().await;
    let user = world.user().await;
    let body = json!({"title": "T", "client_id": user.client("C").await, "rows": priced(&[5])});
    let quote = user.create("quotes", body).await;
    user.act("quotes", &quote, "accept", json!({})).await.expect(200);
    for status in ["open", "rejected"] {
        user.patch("quotes", &quote, json!({"payment_status": status})).await;
        world.clock.advance(TimeDelta::seconds(1));
        let accepted = user.act("quotes", &quote, "accept", json!({})).await.expect(200).at("/data");
        assert_eq!(accepted["payment_status"], "accepted", "after {status}");
        assert_eq!(accepted["meta"]["accepted_at"], accepted["meta"]["updated_at"]);
    }
    let told: i64 = sqlx::query_scalar("select count(*) from billing.log where event = 'quote.accepted'")
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap();
    assert_eq!(told, 3);
}
