use serde_json::{Value, json};

use crate::support::{User, id};
use crate::world::World;

#[derive(Debug, chassis_derive::FromRow)]
struct EventRow {
    r#type: String,
    entity_type: String,
    entity_id: String,
    data: Value,
}

/// The events of the account, in the order of each record.
async fn events(world: &World, user: &User) -> Vec<EventRow> {
    sqlx::query_as(
        "select event as type, kind as entity_type, record_id as entity_id, data::json as data from work.log where event is not null and account_id = $1
         order by record_id, sequence",
    )
    .bind(user.account.id)
    .fetch_all(&mut world.database.connect().await)
    .await
    .unwrap()
}

#[tokio::test]
async fn a_project_emits_each_event_once_and_in_order() {
    let world = World::start().with_relations().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let project = user.create("projects", json!({"name": "A", "client_id": client, "budget": 5})).await;
    let path = format!("/v1/projects/{}", id(&project));
    for body in [
        json!({"status": "active"}),
        json!({"status": "active"}),
        json!({"name": "B"}),
        json!({"status": "completed", "name": ""}),
        json!({"status": "completed"}),
    ] {
        user.api.patch(&path, body).await;
    }
    let events = events(&world, &user).await;
    let names: Vec<&str> = events.iter().map(|event| event.r#type.as_str()).collect();
    let expected =
        ["project.created", "project.status_changed", "project.status_changed", "project.completed"];
    assert_eq!(names, expected);
    for event in &events {
        assert_eq!((event.entity_type.as_str(), &event.entity_id), ("project", &id(&project)));
    }
    let created = json!({
        "id": id(&project), "number": "P-00001", "name": "A", "status": "planned", "client_id": client,
        "budget": 5.0, "start_date": null, "end_date": null, "quote_id": null,
    });
    assert_eq!(events[0].data, created);
    assert_eq!((&events[1].data["from"], &events[1].data["to"]), (&json!("planned"), &json!("active")));
    assert_eq!((&events[2].data["from"], &events[2].data["to"]), (&json!("active"), &json!("completed")));
    assert_eq!(events[3].data["name"], "B");
}

#[tokio::test]
async fn a_project_that_is_created_completed_emits_that_too() {
    let world = World::start().await;
    let user = world.user().await;
    user.create("projects", json!({"name": "A", "status": "completed"})).await;
    let names: Vec<String> = events(&world, &user).await.into_iter().map(|event| event.r#type).collect();
    assert_eq!(names, ["project.created", "project.completed"]);
}
