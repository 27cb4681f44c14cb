//! The counters of the filter by status, after everything that changes a status.

use chassis_testing::assert_filters_counted_with;
use chrono::TimeDelta;
use serde_json::json;

use crate::support::{World, id, path};

#[tokio::test]
async fn whatever_changes_a_status_changes_the_counters_of_both() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Bakery").await;
    let draft = user.draft(&client, &[100]).await;
    let deleted = user.draft(&client, &[100]).await;
    let paid = user.invoice(&client, &[100, 50]).await;
    let credited = user.invoice(&client, &[100, 50]).await;
    let called = user.invoice(&client, &[10]).await;
    let quote = user
        .create(
            "quotes",
            json!({"title": "Q", "client_id": client, "rows": [{"name": "a", "unit_price": 1}]}),
        )
        .await;
    // Old enough to be in a segment.
    world.clock.advance(TimeDelta::hours(1));
    let total = async |list: &str, status: &str| {
        let path = format!("/v1/{list}?payment_status={status}");
        user.api.get(&path).await.expect(200).at("/meta/total").as_i64().unwrap()
    };
    assert_eq!((total("invoices", "open").await, total("invoices", "draft").await), (3, 2));
    user.finalize("invoices", &draft).await;
    user.delete(&path("invoices", &deleted)).await.expect(200);
    let part = user.pay(&paid, json!({"amount": 50})).await;
    assert_eq!(total("invoices", "partially_paid").await, 1);
    user.pay(&paid, json!({})).await;
    user.credit(&credited, json!({"credit_all": false, "row_indexes": [0]})).await;
    assert_eq!(total("invoices", "partially_credited").await, 1);
    user.credit(&credited, json!({})).await;
    user.patch("invoices", &called, json!({"payment_status": "sent"})).await;
    user.patch("invoices", &called, json!({"payment_status": "paid"})).await;
    user.act("quotes", &quote, "accept", json!({})).await.expect(200);
    assert_eq!((total("invoices", "paid").await, total("quotes", "accepted").await), (2, 1));
    let payment = format!("{}/payments/{}", path("invoices", &paid), id(&part["payment"]));
    user.delete(&payment).await.expect(204);
    assert_eq!((total("invoices", "partially_paid").await, total("invoices", "draft").await), (1, 0));
    let owed = "entry.open_amount > 0 and entry.is_final and entry.credits is null \
                and entry.payment_status in ('open', 'partially_paid', 'partially_credited')";
    let named = [
        ("open/true", owed),
        ("is_credit/true", "entry.credits is not null"),
        ("generation_mode/draft", "not entry.is_final"),
        ("generation_mode/final", "entry.is_final"),
    ];
    for list in ["invoice", "quote"] {
        let which = format!("kind = '{list}'");
        assert_filters_counted_with(&world.database, list, "billing.document", &which, &named).await;
    }
}
