//! Production without a payment provider: the sandbox is used only if both operator and account allow it.

use http::Method;
use serde_json::json;
use tonic::Code;

use crate::world::{Invoice, World, says};

const PRODUCTION: [&str; 2] = ["--environment", "production"];
const ALLOWED: [&str; 3] = ["--environment", "production", "--sandbox-in-production"];

/// Checks that nothing can be paid, verified or collected.
async fn is_closed(world: &World, invoice: &Invoice) {
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
    assert_eq!(world.collect(invoice).await.unwrap_err().code(), Code::FailedPrecondition);
    let mandate = world.mandate().await;
    assert_eq!((&mandate["provider"], &mandate["mandate_status"]), (&json!("none"), &json!("none")));
}

/// Checks that no payment was requested.
async fn is_untouched(world: &World) {
    for made in [
        "select count(*) from billing.online_payment",
        "select count(*) from billing.wish",
        "select count(*) from billing.sandbox_payment",
    ] {
        assert_eq!(world.count(made).await, 0, "{made}");
    }
}

#[tokio::test]
async fn in_production_no_payment_is_requested_without_a_provider() {
    let world = World::idle_with(&PRODUCTION).await;
    let invoice = world.invoice(json!({})).await;
    // The consent of the account alone is not enough.
    world.set_sandbox(true).await;
    is_closed(&world, &invoice).await;
    let event = world.visitor.send(Method::POST, "/payments/webhooks", &[], "{}").await.expect(403);
    assert_eq!(event.at("/code"), "bad_signature");
    is_untouched(&world).await;
}

#[tokio::test]
async fn the_sandbox_in_production_needs_the_consent_of_operator_and_account() {
    let world = World::idle_with(&ALLOWED).await;
    let invoice = world.invoice(json!({})).await;
    is_closed(&world, &invoice).await;
    is_untouched(&world).await;
    world.set_sandbox(true).await;
    let checkout = world.pay(&invoice).await;
    world.act(&checkout, "authorise").await;
    assert_eq!(world.payments(&invoice).await, ["paid"]);
}

#[tokio::test]
async fn nothing_is_paid_in_the_sandbox_of_an_account_that_switched_it_off() {
    let world = World::idle().await;
    world.authorise().await;
    let (collected, begun) = (world.invoice(json!({})).await, world.invoice(json!({})).await);
    world.collect(&collected).await.unwrap();
    let checkout = world.pay(&begun).await;
    world.set_sandbox(false).await;
    world.visitor.send(Method::GET, &checkout, &[], "").await.expect(404);
    world.send(&checkout, "act=authorise").await.expect(404);
    assert_eq!(world.mandate().await["provider"], "none");
    // A payment that was open ends unpaid.
    let _helper = world.helper().await;
    world.until(&collected, &["expired"]).await;
    assert_eq!(world.get(&collected).await["payment_status"], "open");
    assert_eq!(world.payments(&begun).await, ["open"]);
    is_closed_for_new(&world).await;
}

async fn is_closed_for_new(world: &World) {
    let invoice = world.invoice(json!({})).await;
    is_closed(world, &invoice).await;
}
