//! Asking a client for a mandate.

use serde_json::{Value, json};

use crate::world::{World, checkout, client, path, says};

fn url(world: &World) -> String {
    format!("/v1/clients/{}/direct-debit/verification", world.client)
}

#[tokio::test]
async fn a_client_gives_a_mandate_on_the_page_of_the_provider() {
    let world = World::idle().await;
    let before = world.mandate().await;
    assert_eq!((&before["mandate_status"], &before["client_found"]), (&json!("none"), &json!(true)));
    let asked = world.api.post(&url(&world), json!({})).await.expect(201).at("/data");
    let keys: Vec<&String> = asked.as_object().unwrap().keys().collect();
    let contract =
        ["status", "payment_url", "external_id", "amount", "provider", "canceled_previous", "meta"];
    assert!(contract.iter().all(|key| keys.iter().any(|have| have == key)) && keys.len() == contract.len());
    assert_eq!(asked["status"], "created");
    assert_eq!((&asked["amount"], &asked["provider"]), (&json!("0.01"), &json!("sandbox")));
    assert_eq!(asked["canceled_previous"], false);
    assert_eq!(path(asked["payment_url"].as_str().unwrap()), checkout(&asked));
    assert_eq!(world.mandate().await["mandate_status"], "pending");

    let page = world.page(&checkout(&asked)).await;
    says(&page, &["Machtigen", "€\u{a0}0,01", "Betalen en machtigen", "Klant &amp; Zonen", "oefenomgeving"]);
    let back = world.act(&checkout(&asked), "authorise").await;
    assert!(back.starts_with("/payments/"), "{back}");
    says(&world.page(&back).await, &["Gelukt", "Uw machtiging is geregeld."]);
    let given = world.mandate().await;
    assert_eq!(given["mandate_status"], "authorized");
    for name in ["mandate_present", "mandate_authorized", "can_activate_subscription"] {
        assert_eq!(given[name], true, "{name}");
    }
    assert_eq!((&given["direct_debit_enabled"], &given["provider"]), (&json!(1), &json!("sandbox")));
    assert_ne!((&given["customer_id"], &given["mandate_id"]), (&json!(""), &json!("")));
    assert_eq!(given["subscription_activation"]["status"], "skipped");
    assert_eq!(given["meta"]["verification_status"], "paid");
}

#[tokio::test]
async fn a_new_verification_cancels_the_open_one() {
    let world = World::start().await;
    let first = world.verify().await;
    let second = world.verify().await;
    assert_eq!(second["canceled_previous"], true);
    assert_ne!(first["external_id"], second["external_id"]);
    let gone = async || world.page(&checkout(&first)).await.contains("Geannuleerd");
    chassis_testing::eventually("the first one is canceled", gone).await;
    // A button on a page that was loaded before has no effect.
    world.act(&checkout(&first), "authorise").await;
    assert_eq!(world.mandate().await["mandate_status"], "pending");
    world.act(&checkout(&second), "authorise").await;
    assert_eq!(world.mandate().await["mandate_status"], "authorized");
    assert_eq!(world.verify().await["canceled_previous"], false, "a verification that ended is left alone");
    assert_eq!(world.mandate().await["mandate_status"], "authorized", "the mandate counts all the same");
    assert_eq!(world.count("select count(*) from billing.sandbox_customer").await, 1);
}

#[tokio::test]
async fn the_amount_may_be_named_in_two_places() {
    let world = World::idle().await;
    for (body, amount) in [
        (json!({"amount": "1.50"}), "1.50"),
        (json!({"amount": 2}), "2.00"),
        (json!({"verification": {"amount": "0.75"}}), "0.75"),
        (json!({"amount": "3.00", "verification": {"amount": "4.00"}}), "3.00"),
        (json!({"amount": null}), "0.01"),
    ] {
        let asked = world.api.post(&url(&world), body.clone()).await.expect(201);
        assert_eq!(asked.at("/data/amount"), amount, "{body}");
    }
    for (body, place) in [
        (json!({"amount": "0"}), "/amount"),
        (json!({"amount": "-1"}), "/amount"),
        (json!({"amount": "0.001"}), "/amount"),
        (json!({"amount": "much"}), "/amount"),
        (json!({"verification": {"amount": 0}}), "/verification/amount"),
    ] {
        let refused = world.api.post(&url(&world), body.clone()).await.expect(422);
        assert_eq!(refused.faults()[0].0, place, "{body}");
    }
}

#[tokio::test]
async fn a_repeated_request_makes_one_verification() {
    let world = World::idle().await;
    let first = world.api.post_keyed(&url(&world), "once", json!({})).await.expect(201);
    let again = world.api.post_keyed(&url(&world), "once", json!({})).await.expect(201);
    assert_eq!(again.header("x-idempotent-replay"), Some("true"));
    assert_eq!(again.body, first.body);
    assert_ne!(first.at("/data/payment_url"), json!(""));
    assert_eq!(world.count("select count(*) from billing.sandbox_payment").await, 1);
}

#[tokio::test]
async fn a_refused_or_expired_verification_gives_no_mandate() {
    let world = World::idle().await;
    for act in ["refuse", "expire"] {
        let asked = world.verify().await;
        let back = world.act(&checkout(&asked), act).await;
        says(&world.page(&back).await, &["Niet gelukt"]);
        let mandate = world.mandate().await;
        assert_eq!(mandate["mandate_status"], "none", "{act}");
        assert_eq!(mandate["direct_debit_enabled"], 0);
    }
}

#[tokio::test]
async fn a_client_that_does_not_exist_has_no_mandate_and_cannot_be_asked_for_one() {
    let world = World::idle().await;
    let other = world.gateway.account("Andere").await;
    let other = world.gateway.api(&other, &["relations.read", "relations.write"]).await;
    let foreign = client(&other, "Van een ander").await;
    for id in [foreign.as_str(), "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05", "x"] {
        let mandate = world.api.get(&format!("/v1/clients/{id}/direct-debit/mandate")).await.expect(200);
        let data: Value = mandate.at("/data");
        assert_eq!((&data["client_found"], &data["mandate_status"]), (&json!(false), &json!("none")));
        assert_eq!((&data["customer_id"], &data["mandate_present"]), (&json!(""), &json!(false)));
        let verification = format!("/v1/clients/{id}/direct-debit/verification");
        world.api.post(&verification, json!({})).await.expect(404);
        world.api.post(&verification, json!({"amount": "0"})).await.expect(422);
    }
}
