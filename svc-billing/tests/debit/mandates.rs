//! The mandate of a client, and activating a subscription with it.

use chrono::TimeDelta;

use crate::world::{World, checkout};

fn with_subscription(world: &World) -> String {
    let unknown = "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05";
    format!("/v1/clients/{}/direct-debit/mandate?subscription_id={unknown}", world.client)
}

#[tokio::test]
async fn activating_a_subscription_needs_the_scope_to_write() {
    let world = World::idle().await;
    let reader = world.gateway.api(&world.account, &["relations.read"]).await;
    let refused = reader.get(&with_subscription(&world)).await.expect(403);
    assert_eq!(refused.at("/code"), "insufficient_scope");
    assert!(refused.at("/detail").as_str().unwrap().contains("relations.write"));
    reader.get(&format!("/v1/clients/{}/direct-debit/mandate", world.client)).await.expect(200);
}

#[tokio::test]
async fn without_an_authorised_mandate_no_subscription_is_looked_for() {
    let world = World::idle().await;
    let status = async || {
        let answer = world.api.get(&with_subscription(&world)).await.expect(200);
        answer.at("/data/subscription_activation/status")
    };
    assert_eq!(status().await, "not_authorized");
    let asked = world.verify().await;
    assert_eq!(status().await, "not_authorized");
    world.act(&checkout(&asked), "authorise").await;
    assert_eq!(status().await, "not_found");
    let odd = format!("/v1/clients/{}/direct-debit/mandate?subscription_id=x", world.client);
    let odd = world.api.get(&odd).await.expect(200);
    assert_eq!(odd.at("/data/subscription_activation/status"), "not_found");
}

#[tokio::test]
async fn a_revoked_mandate_is_invalid_until_the_client_gives_another() {
    let world = World::idle().await;
    let page = world.authorise().await;
    world.act(&page, "revoke").await;
    assert_eq!(
        world.mandate().await["mandate_status"],
        "authorized",
        "the sandbox tells as little as others"
    );
    world.clock.advance(TimeDelta::minutes(6));
    let mandate = world.mandate().await;
    assert_eq!((&mandate["mandate_status"], &mandate["direct_debit_enabled"]), (&"none".into(), &0.into()));
    world.authorise().await;
    assert_eq!(world.mandate().await["mandate_status"], "authorized");
}

#[tokio::test]
async fn reading_the_mandate_refreshes_open_payments() {
    let world = World::idle().await;
    let asked = world.verify().await;
    // Paid at the provider, without a webhook.
    let silent = "update billing.sandbox_payment set status = 'paid', paid_at = created_at";
    sqlx::query(silent).execute(&mut world.database.connect().await).await.unwrap();
    let mandate = world.mandate().await;
    assert_eq!(mandate["mandate_status"], "verified", "{asked}");
    assert_eq!(mandate["mandate_authorized"], false);
    let given = "insert into billing.sandbox_mandate select account_id, id, customer_id, 'valid', false, created_at \
                 from billing.sandbox_payment";
    sqlx::query(given).execute(&mut world.database.connect().await).await.unwrap();
    assert_eq!(world.mandate().await["mandate_status"], "authorized");
}
