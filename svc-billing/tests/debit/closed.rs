//! Production without a payment provider: the sandbox does not stand in for one.

use http::Method;
use serde_json::json;
use tonic::Code;

use crate::world::{World, says};

const PRODUCTION: [&str; 2] = ["--environment", "production"];

#[tokio::test]
async fn in_production_nothing_is_begun_without_a_provider() {
    let world = World::idle_with(&PRODUCTION).await;
    let invoice = world.invoice(json!({})).await;
    let page = world.page(&invoice.page).await;
    says(&page, &["Wij ontvangen uw betaling graag"]);
    assert!(!page.contains("<form"), "there is no button");
    let path = format!("{}/pay", invoice.page);
    let pressed = world.visitor.send(Method::POST, &path, &[], "").await.expect(409);
    let asked = format!("/v1/clients/{}/direct-debit/verification", world.client);
    let asked = world.api.post(&asked, json!({})).await.expect(409);
    for refused in [pressed, asked] {
        assert_eq!(refused.at("/code"), "payment_refused");
        assert!(refused.at("/detail").as_str().unwrap().contains("no payment provider is set up"));
    }
    assert_eq!(world.collect(&invoice).await.unwrap_err().code(), Code::FailedPrecondition);
    let mandate = world.mandate().await;
    assert_eq!((&mandate["provider"], &mandate["mandate_status"]), (&json!("none"), &json!("none")));
    let event = world.visitor.send(Method::POST, "/payments/webhooks", &[], "{}").await.expect(403);
    assert_eq!(event.at("/code"), "bad_signature");
    for made in [
        "select count(*) from billing.online_payment",
        "select count(*) from billing.wish",
        "select count(*) from billing.sandbox_payment",
    ] {
        assert_eq!(world.count(made).await, 0, "{made}");
    }
}

#[tokio::test]
async fn a_rehearsal_in_production_has_to_be_asked_for() {
    let flags = [&PRODUCTION[..], &["--sandbox-in-production"]].concat();
    let world = World::idle_with(&flags).await;
    let invoice = world.invoice(json!({})).await;
    let checkout = world.pay(&invoice).await;
    world.act(&checkout, "authorise").await;
    assert_eq!(world.payments(&invoice).await, ["paid"]);
}
