//! Rows that this version cannot read: a text that stands for no value is an error, and never shown as another value.

use chassis_testing::store_text;
use serde_json::json;

use crate::support::id;
use crate::world::World;

#[tokio::test]
async fn a_row_with_an_unknown_text_fails_instead_of_being_shown_as_another() {
    let world = World::start().await;
    let user = world.user().await;
    let project = format!("/v1/projects/{}", id(&user.project("Kitchen").await));
    let task = format!("/v1/tasks/{}", id(&user.create("tasks", json!({"title": "Call"})).await));
    for (path, table, column, good, change) in [
        (&project, "work.project", "status", "planned", json!({"name": "Bath"})),
        (&task, "work.task", "category", "task", json!({"title": "Visit"})),
    ] {
        let before = user.get(path).await;
        store_text(&world.database, user.account.id, table, column, "unknown").await;
        user.api.get(path).await.expect(500);
        user.api.patch(path, change).await.expect(500);
        store_text(&world.database, user.account.id, table, column, good).await;
        assert_eq!(user.get(path).await, before, "nothing was stored over it");
    }
}
