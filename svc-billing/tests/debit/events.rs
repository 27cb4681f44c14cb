//! Signed webhooks of the provider, which are posted to one URL for all payments.

use gateway::testing::Answer;
use http::Method;
use provider::testing::{InjectedFault, StandIn, signature};
use serde_json::json;

use crate::world::{Invoice, World};

const SECRET: &str = "a secret of the dashboard";
const ADDRESS: &str = "/payments/webhooks";

/// With an invoice whose payment is open. The stand-in sends no webhooks by itself.
async fn start(flags: &[&str]) -> (StandIn, World, Invoice) {
    let clock = chassis_testing::clock();
    let stand_in = StandIn::start_at(move || clock.now()).await;
    stand_in.mute(true);
    let world = World::idle_with_mollie(&stand_in, flags).await;
    let invoice = world.invoice(json!({})).await;
    world.pay(&invoice).await;
    assert_eq!(world.payments(&invoice).await, ["open"]);
    (stand_in, world, invoice)
}

async fn with_secret() -> (StandIn, World, Invoice) {
    start(&["--mollie-webhook-secrets", SECRET]).await
}

fn event(entity: &str) -> String {
    json!({"resource": "event", "id": "event_1", "type": "payment.paid", "entityId": entity}).to_string()
}

async fn send(world: &World, signature: Option<&str>, body: &str) -> Answer {
    let kind = ("content-type", "application/json");
    let headers: Vec<(&str, &str)> =
        [kind].into_iter().chain(signature.map(|value| ("x-mollie-signature", value))).collect();
    world.visitor.send(Method::POST, ADDRESS, &headers, body.to_owned()).await
}

/// Sends an event with a valid signature.
async fn send_signed(world: &World, entity: &str) -> Answer {
    let body = event(entity);
    send(world, Some(&signature(SECRET, body.as_bytes())), &body).await
}

#[tokio::test]
async fn a_signed_event_causes_a_refresh_and_a_replay_changes_nothing() {
    let (stand_in, world, invoice) = with_secret().await;
    let payment = stand_in.payments().pop().unwrap();
    send_signed(&world, &payment).await.expect(200);
    assert_eq!(world.payments(&invoice).await, ["open"], "the content of an event is not trusted");
    stand_in.pay(&payment).await;
    for _ in 0..3 {
        send_signed(&world, &payment).await.expect(200);
        assert_eq!(world.payments(&invoice).await, ["paid"]);
    }
    assert_eq!(world.get(&invoice).await["payment_status"], "paid");
    assert_eq!(world.history(&invoice).await.len(), 3, "each step is told once");
}

#[tokio::test]
async fn an_unsigned_event_is_refused_and_causes_no_refresh() {
    let (stand_in, world, invoice) = with_secret().await;
    let payment = stand_in.payments().pop().unwrap();
    stand_in.pay(&payment).await;
    let asked = stand_in.requests();
    let body = event(&payment);
    let (foreign, other) = (signature("another", body.as_bytes()), signature(SECRET, b"{}"));
    for signature in [None, Some(""), Some("sha256=00"), Some(&*foreign), Some(&*other)] {
        let refused = send(&world, signature, &body).await.expect(403);
        assert_eq!(refused.at("/code"), "bad_signature", "{signature:?}");
    }
    send(&world, None, &format!("id={payment}")).await.expect(403);
    assert_eq!(stand_in.requests(), asked);
    assert_eq!(world.payments(&invoice).await, ["open"]);
}

#[tokio::test]
async fn an_event_about_a_payment_of_another_program_is_accepted_and_changes_nothing() {
    let (stand_in, world, invoice) = with_secret().await;
    let ours = world.payment(&invoice).await["id"].as_str().unwrap().to_owned();
    let other = world.gateway.account("Ander").await;
    let unknown = world.clock.id();
    for reference in [
        format!("{}/{ours}", world.account.id),
        format!("{}/{ours}", other.id),
        format!("{unknown}/{ours}"),
        format!("{}/{unknown}", world.account.id),
        "nonsense".to_owned(),
    ] {
        // A payment of another program at the same provider, with a reference of its choice.
        let foreign = stand_in.add_payment(json!({"reference": reference}));
        stand_in.pay(&foreign).await;
        let asked = stand_in.requests();
        send_signed(&world, &foreign).await.expect(200);
        assert_eq!(stand_in.requests(), asked + 1, "{reference}");
        assert_eq!(world.payments(&invoice).await, ["open"], "{reference}");
    }
    let asked = stand_in.requests();
    for entity in ["pl_1", "tr_../customers", ""] {
        send_signed(&world, entity).await.expect(200);
    }
    assert_eq!(stand_in.requests(), asked, "only payments are asked about");
    send_signed(&world, "tr_unknown").await.expect(200);
}

#[tokio::test]
async fn an_event_that_arrives_while_the_provider_is_unreachable_is_to_be_repeated() {
    let (stand_in, world, invoice) = with_secret().await;
    let payment = stand_in.payments().pop().unwrap();
    stand_in.pay(&payment).await;
    stand_in.inject(&Method::GET, InjectedFault::Failing(503));
    send_signed(&world, &payment).await.expect(503);
    send_signed(&world, &payment).await.expect(200);
    assert_eq!(world.payments(&invoice).await, ["paid"]);
}

#[tokio::test]
async fn without_a_secret_every_event_is_refused() {
    let (stand_in, world, _) = start(&[]).await;
    let payment = stand_in.payments().pop().unwrap();
    let asked = stand_in.requests();
    let refused = send_signed(&world, &payment).await.expect(403);
    assert!(refused.at("/detail").as_str().unwrap().contains("MOLLIE_WEBHOOK_SECRETS"));
    assert_eq!(stand_in.requests(), asked);
    let sandbox = World::idle().await;
    assert_eq!(send_signed(&sandbox, &payment).await.expect(403).at("/code"), "bad_signature");
}
