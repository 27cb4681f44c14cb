//! Mandates that the client withdraws at the bank or at the provider. Neither Mollie nor the stand-in sends a webhook
//! for it.

use chassis_testing::eventually;
use chrono::TimeDelta;
use http::Method;
use provider::testing::{InjectedFault, StandIn};
use serde_json::{Value, json};

use crate::world::World;

const INVALID: &str = "select count(*) from billing.debtor where mandate_status = 'invalid'";

async fn stand_in() -> StandIn {
    let clock = chassis_testing::clock();
    let stand_in = StandIn::start_at(move || clock.now()).await;
    stand_in.mute(true);
    stand_in
}

/// The client gives a mandate.
async fn authorise(world: &World, stand_in: &StandIn) {
    let asked = world.verify().await;
    stand_in.pay(asked["external_id"].as_str().unwrap()).await;
    assert_eq!(world.mandate().await["mandate_status"], "authorized");
}

fn withdraw(stand_in: &StandIn) {
    stand_in.withdraw_mandate(&stand_in.mandates().pop().unwrap());
}

/// The path of a draft subscription that waits for a mandate.
async fn draft(world: &World) -> String {
    let lines = json!([{"title": "Brood", "quantity": 1, "unit_price": 100, "vat_code": "VAT21"}]);
    let body = json!({"client_id": world.client, "lines": lines});
    let made = world.api.post("/v1/subscriptions", body).await.expect(201).at("/data/id");
    made.as_str().unwrap().to_owned()
}

fn activation(world: &World, subscription: &str) -> String {
    format!("/v1/clients/{}/direct-debit/mandate?subscription_id={subscription}", world.client)
}

async fn status(world: &World, subscription: &str) -> Value {
    world.api.get(&format!("/v1/subscriptions/{subscription}")).await.expect(200).at("/data/status")
}

#[tokio::test]
async fn a_collection_that_is_refused_for_its_mandate_invalidates_the_mandate() {
    let stand_in = stand_in().await;
    let world = World::with_mollie(&stand_in).await;
    authorise(&world, &stand_in).await;
    withdraw(&stand_in);
    let invoice = world.invoice(json!({})).await;
    world.collect(&invoice).await.unwrap();
    world.until(&invoice, &["failed"]).await;
    let mandate = world.mandate().await;
    assert_eq!((&mandate["mandate_status"], &mandate["mandate_authorized"]), (&json!("none"), &json!(false)));
    assert_eq!(mandate["can_activate_subscription"], false);
    let subscription = draft(&world).await;
    let answer = world.api.get(&activation(&world, &subscription)).await.expect(200);
    assert_eq!(answer.at("/data/subscription_activation/status"), "not_authorized");
    assert_eq!(status(&world, &subscription).await, "draft");
    let refused = world.collect(&world.invoice(json!({})).await).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::FailedPrecondition);
    authorise(&world, &stand_in).await;
}

#[tokio::test]
async fn a_withdrawn_mandate_is_noticed_within_a_day_despite_provider_failures() {
    let stand_in = stand_in().await;
    let world = World::with_mollie(&stand_in).await;
    authorise(&world, &stand_in).await;
    withdraw(&stand_in);
    stand_in.inject(&Method::GET, InjectedFault::Failing(503));
    world.clock.advance(TimeDelta::hours(23));
    let failed = "select count(*) from billing.debtor where ask_failures = 1 and mandate_status = 'valid'";
    eventually("the provider did not answer", async || world.count(failed).await == 1).await;
    eventually("the mandate is known to be gone", async || {
        world.clock.advance(TimeDelta::seconds(20));
        world.count(INVALID).await == 1
    })
    .await;
    let asked = stand_in.requests();
    assert_eq!(world.mandate().await["mandate_status"], "none");
    assert_eq!(stand_in.requests(), asked, "what is known is not asked for again");
}

#[tokio::test]
async fn a_valid_mandate_is_fetched_once_a_day() {
    let stand_in = stand_in().await;
    let world = World::with_mollie(&stand_in).await;
    authorise(&world, &stand_in).await;
    let mut asked = stand_in.requests();
    for day in 1..=3 {
        world.clock.advance(TimeDelta::hours(24));
        eventually("the mandate was asked for", async || stand_in.requests() > asked).await;
        let settled =
            "select count(*) from billing.debtor where ask_failures = 0 and mandate_status = 'valid'";
        eventually("the answer is noted", async || world.count(settled).await == 1).await;
        asked += 1;
        assert_eq!(stand_in.requests(), asked, "day {day}");
    }
}

#[tokio::test]
async fn an_activation_fetches_a_mandate_that_is_not_recent() {
    let stand_in = stand_in().await;
    let world = World::idle_with_mollie(&stand_in, &[]).await;
    authorise(&world, &stand_in).await;
    let subscription = draft(&world).await;
    world.clock.advance(TimeDelta::minutes(6));
    // Nothing is activated with a mandate that cannot be confirmed. The gateway repeats the call three times.
    for _ in 0..3 {
        stand_in.inject(&Method::GET, InjectedFault::Failing(503));
    }
    world.api.get(&activation(&world, &subscription)).await.expect(503);
    assert_eq!(status(&world, &subscription).await, "draft");
    withdraw(&stand_in);
    let answer = world.api.get(&activation(&world, &subscription)).await.expect(200);
    assert_eq!(answer.at("/data/subscription_activation/status"), "not_authorized");
    assert_eq!(answer.at("/data/mandate_status"), "none");
    assert_eq!(status(&world, &subscription).await, "draft");
}

#[tokio::test]
async fn an_activation_with_a_recent_mandate_fetches_nothing() {
    let stand_in = stand_in().await;
    let world = World::idle_with_mollie(&stand_in, &[]).await;
    authorise(&world, &stand_in).await;
    let subscription = draft(&world).await;
    let asked = stand_in.requests();
    let answer = world.api.get(&activation(&world, &subscription)).await.expect(200);
    assert_eq!(answer.at("/data/subscription_activation/status"), "activated");
    assert_eq!(stand_in.requests(), asked);
}
