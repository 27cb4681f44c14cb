//! Webhooks of the provider, and payments without one.

use chassis_rpc::Link;
use chrono::TimeDelta;
use http::Method;
use serde_json::json;

use crate::world::World;

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

/// The webhook URL of the payment.
async fn webhook(world: &World) -> String {
    let token: Vec<u8> = sqlx::query_scalar("select token from billing.online_payment")
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap();
    let link = Link { account: world.account.id, secret: token.try_into().unwrap() };
    format!("/payments/webhooks/{}", link.encode())
}

/// The payer pays, and the provider sends no webhook.
async fn pay_silently(world: &World) {
    let sql = "update billing.sandbox_payment set status = 'paid', paid_at = created_at";
    sqlx::query(sql).execute(&mut world.database.connect().await).await.unwrap();
}

#[tokio::test]
async fn a_webhook_causes_a_refresh_and_a_second_one_changes_nothing() {
    let world = World::idle().await;
    let invoice = world.invoice(json!({})).await;
    world.pay(&invoice).await;
    let address = webhook(&world).await;
    world.visitor.send(Method::POST, &address, &[FORM], "id=tr_unknown").await.expect(200);
    assert_eq!(world.payments(&invoice).await, ["open"], "what a message says is not believed");
    pay_silently(&world).await;
    for body in ["id=tr_unknown", "", "id=%F0%9F%8D%9E&status=failed"] {
        world.visitor.send(Method::POST, &address, &[FORM], body).await.expect(200);
        assert_eq!(world.payments(&invoice).await, ["paid"]);
    }
    let steps = ["payment_added created", "payment_changed open", "payment_changed paid"];
    assert_eq!(world.history(&invoice).await, steps, "each step is told once");
    let unmade = Link::random(world.account.id).encode();
    world.visitor.send(Method::POST, &format!("/payments/webhooks/{unmade}"), &[FORM], "").await.expect(404);
}

#[tokio::test]
async fn webhooks_that_arrive_at_the_same_time_are_recorded_once() {
    let world = World::idle().await;
    let invoice = world.invoice(json!({})).await;
    world.pay(&invoice).await;
    let address = webhook(&world).await;
    pay_silently(&world).await;
    let hear = || world.visitor.send(Method::POST, &address, &[FORM], "id=x");
    let (one, two, three, four) = tokio::join!(hear(), hear(), hear(), hear());
    for answer in [one, two, three, four] {
        answer.expect(200);
    }
    assert_eq!(world.payments(&invoice).await, ["paid"]);
    assert_eq!(world.history(&invoice).await.len(), 3);
}

#[tokio::test]
async fn a_payment_without_a_webhook_is_polled() {
    let world = World::start().await;
    let invoice = world.invoice(json!({})).await;
    world.pay(&invoice).await;
    pay_silently(&world).await;
    world.clock.advance(TimeDelta::minutes(2));
    world.until(&invoice, &["paid"]).await;
    // Charged back weeks later, again without a webhook.
    let sql = "update billing.sandbox_payment set charged_back = amount";
    sqlx::query(sql).execute(&mut world.database.connect().await).await.unwrap();
    world.clock.advance(TimeDelta::days(20));
    world.until(&invoice, &["chargeback"]).await;
    assert_eq!(world.get(&invoice).await["payment_status"], "open");
}

#[tokio::test]
async fn a_command_of_a_killed_process_is_executed_by_another() {
    let world = World::idle().await;
    let invoice = world.invoice(json!({})).await;
    world.pay(&invoice).await;
    // As if the process had been killed between a command and its outcome: the provider has created the payment, and
    // nothing is recorded here.
    let mut connection = world.database.connect().await;
    for sql in [
        "insert into billing.wish select account_id, gen_random_uuid(), 'payment', id, provider, 0, 1, created_at, '', \
         created_at from billing.online_payment",
        "delete from billing.wish where kind = 'ask'",
        "update billing.online_payment set status = 'wanted', external_id = '', checkout_url = ''",
    ] {
        sqlx::query(sql).execute(&mut connection).await.unwrap();
    }
    let _helper = world.helper().await;
    let known = async || {
        world
            .count("select count(*) from billing.online_payment where status = 'open' and external_id <> ''")
            .await
            == 1
    };
    chassis_testing::eventually("the payment is found again", known).await;
    assert_eq!(world.count("select count(*) from billing.sandbox_payment").await, 1);
    let leads = world.pay(&invoice).await;
    world.act(&leads, "authorise").await;
    assert_eq!(world.payments(&invoice).await, ["paid"]);
}
