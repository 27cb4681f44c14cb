//! Rows that this version cannot read: a text that stands for no value is an error, and never shown as another value.

use serde_json::json;
use sqlx::AssertSqlSafe;

use crate::support::{User, id};
use crate::world::World;

/// Drops the constraint that refuses other texts, as a newer version may do, and stores one.
async fn store_text(world: &World, user: &User, table: &str, column: &str, text: &str) {
    let mut connection = world.database.connect().await;
    let drop = format!("alter table work.{table} drop constraint if exists {table}_{column}_known");
    sqlx::query(AssertSqlSafe(drop)).execute(&mut connection).await.unwrap();
    let update = format!("update work.{table} set {column} = $2 where account_id = $1");
    sqlx::query(AssertSqlSafe(update))
        .bind(user.account.id)
        .bind(text)
        .execute(&mut connection)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_row_with_an_unknown_text_fails_instead_of_being_shown_as_another() {
    let world = World::start().await;
    let user = world.user().await;
    let project = format!("/v1/projects/{}", id(&user.project("Kitchen").await));
    let task = format!("/v1/tasks/{}", id(&user.create("tasks", json!({"title": "Call"})).await));
    for (path, table, column, good, change) in [
        (&project, "project", "status", "planned", json!({"name": "Bath"})),
        (&task, "task", "category", "task", json!({"title": "Visit"})),
    ] {
        let before = user.get(path).await;
        store_text(&world, &user, table, column, "unknown").await;
        user.api.get(path).await.expect(500);
        user.api.patch(path, change).await.expect(500);
        store_text(&world, &user, table, column, good).await;
        assert_eq!(user.get(path).await, before, "nothing was stored over it");
    }
}
