//! Rows that this version cannot read: a text that stands for no value is an error, and never shown as another value.

use chassis_testing::store_text;
use serde_json::json;

use crate::support::{World, path};

#[tokio::test]
async fn a_deal_with_an_unknown_status_or_priority_fails_instead_of_being_shown_as_another() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    let deal = user.titled_deal(&client, "Ovens").await;
    for (column, good, unknown) in [("status", "open", "paused"), ("priority", "medium", "urgent")] {
        store_text(&world.database, user.account.id, "crm.deal", column, unknown).await;
        user.api.get(&path(&deal)).await.expect(500);
        user.api.get("/v1/deals").await.expect(500);
        user.patch(&deal, json!({"title": "Mills"})).await.expect(500);
        store_text(&world.database, user.account.id, "crm.deal", column, good).await;
        assert_eq!(user.get(&deal).await["title"], "Ovens", "nothing was stored over it");
    }
}

#[tokio::test]
async fn a_history_with_an_unknown_status_fails_and_the_list_of_deals_works() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    let deal = user.titled_deal(&client, "Ovens").await;
    store_text(&world.database, user.account.id, "crm.deal_step", "status", "paused").await;
    user.api.get(&path(&deal)).await.expect(500);
    assert_eq!(user.titles("").await, ["Ovens"]);
}
