//! Rows with a text that this release does not know, as a newer release or a person could have stored it: they are an
//! error, and never shown as something else.

use serde_json::json;

use crate::world::World;

async fn execute(world: &World, statements: &[&'static str]) {
    let mut connection = world.database.connect().await;
    for statement in statements {
        sqlx::query(*statement).execute(&mut connection).await.unwrap();
    }
}

#[tokio::test]
async fn a_payment_with_an_unknown_status_is_not_listed_as_another() {
    let world = World::idle().await;
    let invoice = world.invoice(json!({})).await;
    let payments = format!("{}/payments", invoice.api);
    world.api.post(&payments, json!({})).await.expect(201);
    execute(&world, &["update billing.payment set status = 'half_paid'"]).await;
    let answer = world.api.get(&payments).await.expect(500);
    assert!(!String::from_utf8_lossy(&answer.body).contains("half_paid"), "causes are logged, not sent");
    execute(&world, &["update billing.payment set status = 'paid', method = 'shells'"]).await;
    world.api.get(&payments).await.expect(500);
    execute(&world, &["update billing.payment set method = 'ideal'"]).await;
    world.api.get(&payments).await.expect(200);
}

#[tokio::test]
async fn an_online_payment_with_an_unknown_status_does_not_count_as_failed() {
    let world = World::idle().await;
    let invoice = world.invoice(json!({})).await;
    world.pay(&invoice).await;
    // Read as failed it would let the payer start a second payment.
    execute(&world, &["update billing.online_payment set status = 'held'"]).await;
    world.send(&format!("{}/pay", invoice.page), "").await.expect(500);
    assert_eq!(world.count("select count(*) from billing.online_payment").await, 1);
    execute(&world, &["update billing.online_payment set status = 'open'"]).await;
    world.pay(&invoice).await;
    assert_eq!(world.count("select count(*) from billing.online_payment").await, 1);
}

#[tokio::test]
async fn a_subscription_with_an_unknown_status_or_term_is_not_shown_as_another() {
    let world = World::idle().await;
    let body = json!({"client_id": world.client, "lines": [{"title": "Hosting", "unit_price": 10}]});
    let id = world.api.post("/v1/subscriptions", body).await.expect(201).at("/data/id");
    let path = format!("/v1/subscriptions/{}", id.as_str().unwrap());
    world.api.get(&path).await.expect(200);
    let unknown_status = [
        "alter table billing.subscription drop constraint subscription_status_known",
        "update billing.subscription set status = 'paused'",
    ];
    execute(&world, &unknown_status).await;
    world.api.get(&path).await.expect(500);
    let unknown_term = [
        "alter table billing.subscription drop constraint subscription_term_known",
        "update billing.subscription set status = 'draft', term = 'daily'",
    ];
    execute(&world, &unknown_term).await;
    world.api.get(&path).await.expect(500);
}
