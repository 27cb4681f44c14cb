use chrono::TimeDelta;
use serde_json::json;

use crate::support::{World, path, priced};

#[tokio::test]
async fn a_replayed_final_create_is_the_first_answer_byte_for_byte() {
    let world = World::new().await;
    let user = world.user().await;
    let body =
        json!({"title": "T", "client_id": user.client("C").await, "rows": priced(&[5]), "generate": true});
    let first = user.api.post_keyed("/v1/invoices", "key", body.clone()).await.expect(201);
    assert_eq!(first.at("/data/pdf/status"), "ready");
    assert_eq!(first.header("x-idempotent-replay"), None);
    // Not even what happened to it since is shown.
    user.patch("invoices", &first.at("/data"), json!({"title": "New"})).await;
    world.clock.advance(TimeDelta::hours(23));
    let again = user.api.post_keyed("/v1/invoices", "key", body.clone()).await.expect(201);
    assert_eq!(again.header("x-idempotent-replay"), Some("true"));
    assert_eq!(again.header("location"), first.header("location"));
    assert_eq!(again.body, first.body);
    assert_eq!(user.total("invoices").await, 1);
    let mut other = body;
    other["title"] = json!("U");
    let reused = user.api.post_keyed("/v1/invoices", "key", other).await.expect(422);
    assert_eq!(reused.at("/code"), "idempotency_key_reused");
}

#[tokio::test]
async fn every_action_is_done_once_for_a_key() {
    let world = World::new().await;
    let user = world.user().await;
    let invoice = user.invoice(&user.client("C").await, &[5, 6]).await;
    let here = path("invoices", &invoice);
    for (action, body, status) in [
        ("payments", json!({"amount": 1}), 201),
        ("credit", json!({"credit_all": false, "row_indexes": [0]}), 201),
        ("finalize", json!({}), 200),
    ] {
        let there = format!("{here}/{action}");
        let first = user.api.post_keyed(&there, "key", body.clone()).await.expect(status);
        let again = user.api.post_keyed(&there, "key", body).await.expect(status);
        assert_eq!(again.header("x-idempotent-replay"), Some("true"), "{action}");
        assert_eq!(again.body, first.body, "{action}");
    }
    let invoice = user.get("invoices", &invoice).await;
    assert_eq!(invoice["meta"]["paid_amount"], 1.0);
    assert_eq!(invoice["meta"]["credited_by"].as_array().unwrap().len(), 1);
    assert_eq!(user.total("invoices").await, 2);
}

#[tokio::test]
async fn a_refused_create_frees_its_key_and_its_number() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let taken = json!({"title": "T", "external_id": "x"});
    user.create("invoices", taken).await;
    let body = json!({"title": "T", "client_id": client, "rows": priced(&[5]), "generate": true, "external_id": "x"});
    user.api.post_keyed("/v1/invoices", "key", body.clone()).await.expect(409);
    let mut free = body;
    free["external_id"] = json!("y");
    let made = user.api.post_keyed("/v1/invoices", "key", free).await.expect(201);
    assert_eq!(made.at("/data/number"), "INV-2026-00001");
}
