//! Payments that arrive when nothing, or less than their amount, is open.

use serde_json::json;

use crate::world::{World, says};

#[tokio::test]
async fn a_payment_that_arrives_when_nothing_is_open_is_recorded_and_refunded() {
    let world = World::idle().await;
    let invoice = world.invoice(json!({})).await;
    let leads = world.pay(&invoice).await;
    // No worker runs that would cancel the checkout.
    world.api.post(&format!("{}/payments", invoice.api), json!({})).await.expect(201);
    world.act(&leads, "authorise").await;
    assert_eq!(world.payments(&invoice).await, ["paid", "paid"]);
    assert_eq!(world.get(&invoice).await["meta"]["overpaid_amount"], json!(1210.0));
    let _helper = world.helper().await;
    world.until(&invoice, &["refunded", "paid"]).await;
    let shown = world.get(&invoice).await;
    assert_eq!((&shown["payment_status"], &shown["meta"]["overpaid_amount"]), (&json!("paid"), &json!(0.0)));
    says(&world.page(&leads).await, &["Terugbetaald"]);
    assert_eq!(world.history(&invoice).await.last().unwrap(), "payment_changed refunded");
    let commands = "select count(*) from billing.wish where kind <> 'ask'";
    let none = async || world.count(commands).await == 0;
    chassis_testing::eventually("nothing is left to be done", none).await;
}

#[tokio::test]
async fn an_overpaid_amount_is_reported() {
    let world = World::idle().await;
    let invoice = world.invoice(json!({})).await;
    let leads = world.pay(&invoice).await;
    world.api.post(&format!("{}/payments", invoice.api), json!({"amount": "10.00"})).await.expect(201);
    world.act(&leads, "authorise").await;
    assert_eq!(world.get(&invoice).await["meta"]["overpaid_amount"], json!(10.0));
    let _helper = world.helper().await;
    let none = async || world.count("select count(*) from billing.wish where kind <> 'ask'").await == 0;
    chassis_testing::eventually("nothing is left to be done", none).await;
    assert_eq!(world.payments(&invoice).await, ["paid", "paid"]);
}

#[tokio::test]
async fn a_refund_opens_the_invoice_again() {
    let world = World::idle().await;
    let invoice = world.invoice(json!({})).await;
    let leads = world.pay(&invoice).await;
    world.act(&leads, "authorise").await;
    world.act(&leads, "refund").await;
    assert_eq!(world.payments(&invoice).await, ["refunded"]);
    assert_eq!(world.get(&invoice).await["payment_status"], "open");
    says(&world.page(&invoice.page).await, &["Openstaand", "Nu €\u{a0}1.210,00 betalen"]);
}
