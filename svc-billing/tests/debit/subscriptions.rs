//! Subscriptions that start with a mandate, and whose invoices are collected with it.

use chassis_testing::eventually;
use serde_json::{Value, json};

use crate::world::{Invoice, World, client, path};

async fn subscription(world: &World, body: Value) -> String {
    let made = world.api.post("/v1/subscriptions", body).await.expect(201);
    made.at("/data/id").as_str().unwrap().to_owned()
}

/// The status of the activation in the answer about the mandate.
async fn activation(world: &World, subscription: &str) -> String {
    let url = format!("/v1/clients/{}/direct-debit/mandate?subscription_id={subscription}", world.client);
    let told = world.api.get(&url).await.expect(200).at("/data/subscription_activation/status");
    told.as_str().unwrap().to_owned()
}

fn lines() -> Value {
    json!([{"title": "Brood", "quantity": 1, "unit_price": 100, "vat_code": "VAT21"}])
}

#[tokio::test]
async fn a_mandate_starts_a_subscription_whose_first_invoice_is_collected() {
    let world = World::start().await;
    let body = json!({"title": "Brood per maand", "client_id": world.client, "lines": lines()});
    let id = subscription(&world, body).await;
    assert_eq!(activation(&world, &id).await, "not_authorized");
    world.authorise().await;
    assert_eq!(activation(&world, &id).await, "activated");
    let url = format!("/v1/subscriptions/{id}/invoices");
    let billed = async || world.api.get(&url).await.expect(200).at("/meta/total") == 1;
    eventually("the first invoice is there", billed).await;
    let listed = world.api.get(&url).await.at("/data/0");
    let id_of = listed["id"].as_str().unwrap().to_owned();
    let api = format!("/v1/invoices/{id_of}");
    let page = path(world.api.get(&api).await.at("/data/web_url").as_str().unwrap());
    let invoice = Invoice { id: id_of, api, page };
    world.until(&invoice, &["paid"]).await;
    let paid = world.get(&invoice).await;
    assert_eq!((&paid["payment_status"], &paid["meta"]["subscription_id"]), (&json!("paid"), &json!(id)));
    assert_eq!(world.mandate().await["mandate_status"], "active");
    let ubl = world.api.get(&format!("{}/ubl", invoice.api)).await.expect(200);
    let xml = String::from_utf8(ubl.body.to_vec()).unwrap();
    let means = "<cbc:PaymentMeansCode>59</cbc:PaymentMeansCode>";
    assert!(
        xml.contains(means) && xml.contains("<cac:PaymentMandate>"),
        "it was issued to be collected: {xml}"
    );
    assert_eq!(activation(&world, &id).await, "activated", "also when it is active already");
    assert_eq!(world.api.get(&url).await.at("/meta/total"), 1);
}

#[tokio::test]
async fn the_reasons_why_a_subscription_cannot_start_differ() {
    let world = World::idle().await;
    world.authorise().await;
    let whole = json!({"client_id": world.client, "lines": lines(), "subscription_start": "2026-11-01"});
    let ended = subscription(&world, whole).await;
    world.api.post(&format!("/v1/subscriptions/{ended}/deactivate"), json!({})).await.expect(200);
    let empty = subscription(&world, json!({"client_id": world.client})).await;
    let other = client(&world.api, "Iemand anders").await;
    let foreign = subscription(&world, json!({"client_id": other, "lines": lines()})).await;
    for (id, expected) in [
        (ended.as_str(), "update_failed"),
        (&empty, "update_failed"),
        (&foreign, "not_found"),
        ("019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05", "not_found"),
        ("x", "not_found"),
        ("", "skipped"),
    ] {
        assert_eq!(activation(&world, id).await, expected, "{id}");
    }
}
