//! The same with Mollie as the provider: a stand-in that behaves as Mollie's documents say, over real HTTP. Its webhooks
//! do not reach us here, so that everything is learnt by asking.

use chrono::TimeDelta;
use http::Method;
use provider::testing::{StandIn, Trouble};
use serde_json::json;

use crate::world::World;

/// A stand-in on the world's own clock, whose messages get lost.
async fn start() -> (StandIn, World) {
    let clock = chassis_testing::clock();
    let stand_in = StandIn::start_at(move || clock.now()).await;
    stand_in.mute(true);
    let world = World::with_mollie(&stand_in).await;
    (stand_in, world)
}

/// The client pays the verification that was asked for last.
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
    // Noted here too: from then on it is asked after, by the clock that is moved below.
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
async fn an_answer_of_mollie_that_never_came_makes_no_second_payment() {
    for trouble in [Trouble::Dropped, Trouble::Failing(503)] {
        let (stand_in, world) = start().await;
        authorise(&world, &stand_in).await;
        let invoice = world.invoice(json!({})).await;
        stand_in.trouble(&Method::POST, trouble);
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
async fn a_verification_that_begins_while_mollie_is_away_says_that_it_may_have_happened() {
    let (stand_in, world) = start().await;
    (0..9).for_each(|_| stand_in.trouble(&Method::POST, Trouble::Failing(503)));
    let path = format!("/v1/clients/{}/direct-debit/verification", world.client);
    let answer = world.api.post(&path, json!({})).await.expect(503);
    assert_eq!((answer.at("/code"), answer.at("/may_have_happened")), (json!("unavailable"), json!(true)));
    assert_eq!(world.count("select count(*) from billing.online_payment").await, 1, "it is asked for later");
}
