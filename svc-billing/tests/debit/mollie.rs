//! Direct debit with Mollie as the provider: a stand-in that follows Mollie's documentation, over real HTTP. Its
//! webhooks do not arrive here, so that every change is found by polling.

use chrono::TimeDelta;
use http::Method;
use provider::testing::{InjectedFault, StandIn};
use serde_json::json;

use crate::world::World;

/// A stand-in with the clock of the world, whose webhooks are lost.
async fn start() -> (StandIn, World) {
    let clock = chassis_testing::clock();
    let stand_in = StandIn::start_at(move || clock.now()).await;
    stand_in.mute(true);
    let world = World::with_mollie(&stand_in).await;
    (stand_in, world)
}

/// The client pays the latest verification.
async fn authorise(world: &World, stand_in: &StandIn) {
    let asked = world.verify().await;
    assert_eq!(asked["provider"], "mollie");
    let payment = asked["external_id"].as_str().unwrap();
    assert!(payment.starts_with("tr_"), "{payment}");
    stand_in.pay(payment).await;
    assert_eq!(world.mandate().await["mandate_status"], "authorized", "a look at the mandate asks");
}

fn newest(stand_in: &StandIn) -> String {
    stand_in.payments().pop().unwrap()
}

#[tokio::test]
async fn an_invoice_is_collected_charged_back_and_collected_again() {
    let (stand_in, world) = start().await;
    authorise(&world, &stand_in).await;
    let invoice = world.invoice(json!({})).await;
    world.collect(&invoice).await.unwrap();
    let asked_for = async || stand_in.payments().len() == 2;
    chassis_testing::eventually("Mollie has the collection", asked_for).await;
    // Recorded here too: from then on it is polled, by the clock that is moved below.
    world.until(&invoice, &["pending"]).await;
    stand_in.pay(&newest(&stand_in)).await;
    world.clock.advance(TimeDelta::days(2));
    world.until(&invoice, &["paid"]).await;
    assert_eq!(world.get(&invoice).await["payment_status"], "paid");
    assert_eq!(world.mandate().await["mandate_status"], "active");
    stand_in.charge_back(&newest(&stand_in), "1210".parse().unwrap(), "insufficient funds").await;
    world.clock.advance(TimeDelta::days(20));
    world.until(&invoice, &["chargeback"]).await;
    assert_eq!(world.get(&invoice).await["payment_status"], "open");
    world.collect(&invoice).await.unwrap();
    let repeated = async || stand_in.payments().len() == 3;
    chassis_testing::eventually("Mollie has the second collection", repeated).await;
    assert_eq!(stand_in.customers().len(), 1);
}

#[tokio::test]
async fn a_lost_answer_of_mollie_creates_no_second_payment() {
    for fault in [InjectedFault::Dropped, InjectedFault::Failing(503)] {
        let (stand_in, world) = start().await;
        authorise(&world, &stand_in).await;
        let invoice = world.invoice(json!({})).await;
        stand_in.inject(&Method::POST, fault);
        world.collect(&invoice).await.unwrap();
        let tried = async || {
            let attempts = "select count(*) from billing.wish where kind = 'payment' and last_error <> ''";
            world.count(attempts).await == 1
        };
        chassis_testing::eventually("the first try went wrong", tried).await;
        world.clock.advance(TimeDelta::minutes(1));
        world.until(&invoice, &["pending"]).await;
        assert_eq!(stand_in.payments().len(), 2, "the verification and one collection");
    }
}

#[tokio::test]
async fn a_verification_while_mollie_is_unreachable_may_have_happened() {
    let (stand_in, world) = start().await;
    (0..9).for_each(|_| stand_in.inject(&Method::POST, InjectedFault::Failing(503)));
    let path = format!("/v1/clients/{}/direct-debit/verification", world.client);
    let answer = world.api.post(&path, json!({})).await.expect(503);
    assert_eq!((answer.at("/code"), answer.at("/may_have_happened")), (json!("unavailable"), json!(true)));
    assert_eq!(world.count("select count(*) from billing.online_payment").await, 1, "it is asked for later");
}
