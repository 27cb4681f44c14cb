//! Rows that this version cannot read: a text that stands for no value is an error, and never shown as another value.

use serde_json::json;
use sqlx::AssertSqlSafe;

use crate::support::{User, World, path};

/// Drops the constraint that refuses other texts, as a newer version may do, and stores one.
async fn store_text(world: &World, user: &User, table: &str, column: &str, text: &str) {
    let mut connection = world.database.connect().await;
    let drop = format!("alter table crm.{table} drop constraint if exists {table}_{column}_known");
    sqlx::query(AssertSqlSafe(drop)).execute(&mut connection).await.unwrap();
    let update = format!("update crm.{table} set {column} = $2 where account_id = $1");
    sqlx::query(AssertSqlSafe(update))
        .bind(user.account.id)
        .bind(text)
        .execute(&mut connection)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_deal_with_an_unknown_status_or_priority_fails_instead_of_being_shown_as_another() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    let deal = user.titled_deal(&client, "Ovens").await;
    for (column, good, unknown) in [("status", "open", "paused"), ("priority", "medium", "urgent")] {
        store_text(&world, &user, "deal", column, unknown).await;
        user.api.get(&path(&deal)).await.expect(500);
        user.api.get("/v1/deals").await.expect(500);
        user.patch(&deal, json!({"title": "Mills"})).await.expect(500);
        store_text(&world, &user, "deal", column, good).await;
        assert_eq!(user.get(&deal).await["title"], "Ovens", "nothing was stored over it");
    }
}

#[tokio::test]
async fn a_history_with_an_unknown_status_fails_and_the_list_of_deals_works() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    let deal = user.titled_deal(&client, "Ovens").await;
    store_text(&world, &user, "deal_step", "status", "paused").await;
    user.api.get(&path(&deal)).await.expect(500);
    assert_eq!(user.titles("").await, ["Ovens"]);
}
