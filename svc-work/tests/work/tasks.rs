use chassis_testing::expected_faults;
use serde_json::json;

use crate::support::id;
use crate::world::World;

#[tokio::test]
async fn each_operation_shows_of_a_task_what_the_contract_says() {
    let world = World::start().with_relations().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let project = id(&user.project("P").await);
    let body = json!({
        "title": " Call ", "category": "call", "notes": "soon", "deadline": "2026-11-20T10:00:00+01:00",
        "duration_minutes": 30, "client_id": client, "project_id": project,
    });
    let created = user.api.post("/v1/tasks", body).await.expect(201);
    let task = id(&created.at("/data"));
    let path = format!("/v1/tasks/{task}");
    assert_eq!(
        created.at("/data"),
        json!({"id": task, "title": "Call", "category": "call", "status": "open", "version": 1})
    );
    assert_eq!(created.header("location"), Some(path.as_str()));
    let (time, deadline) = ("2026-11-15T11:00:00.123Z", "2026-11-20T09:00:00.000Z");
    let meta = json!({"deal_id": null, "completed_at": null, "updated_at": time, "version": 1});
    let mut expected = json!({
        "id": task, "title": "Call", "category": "call", "status": "open", "notes": "soon", "deadline": deadline,
        "duration_minutes": 30, "client_id": client, "project_id": project, "created_at": time, "meta": meta,
    });
    assert_eq!(user.get(&path).await["data"], expected);
    for name in ["notes", "duration_minutes"] {
        expected.as_object_mut().unwrap().remove(name);
    }
    let list = user.get("/v1/tasks").await;
    assert_eq!(list["data"], json!([expected]));
    assert_eq!(list["meta"], json!({"page": 1, "per_page": 25, "total": 1, "pages": 1}));
    let changed = user.api.patch(&path, json!({"deadline": "2026-12-01", "notes": null})).await.expect(200);
    let expected = json!({
        "id": task, "title": "Call", "category": "call", "status": "open", "notes": "", "deadline": "2026-12-01",
        "version": 2,
    });
    assert_eq!(changed.json(), json!({"data": expected, "meta": {}}));
}

#[tokio::test]
async fn completing_and_reopening_can_be_repeated() {
    let world = World::start().await;
    let user = world.user().await;
    let task = id(&user.create("tasks", json!({"title": "T"})).await);
    let path = format!("/v1/tasks/{task}");
    let act = async |action: &str| {
        world.clock.advance(chrono::TimeDelta::seconds(1));
        let answer = user.api.post(&format!("{path}/{action}"), json!({})).await.expect(200);
        let status = answer.at("/data/status").as_str().unwrap().to_owned();
        let meta = user.get(&path).await["data"]["meta"].clone();
        let version = meta["version"].as_i64().unwrap();
        let shown = json!({"id": task, "title": "T", "status": status, "version": version});
        assert_eq!(answer.at("/data"), shown);
        (status, version, meta["completed_at"].clone())
    };
    let done = ("completed".to_owned(), 2, json!("2026-11-15T11:00:02.123Z"));
    assert_eq!(act("reopen").await, ("open".to_owned(), 1, json!(null)));
    assert_eq!(act("complete").await, done);
    assert_eq!(act("complete").await, done, "when it was completed does not change");
    assert_eq!(act("reopen").await, ("open".to_owned(), 3, json!(null)));
    user.api.post("/v1/tasks/nonsense/complete", json!({})).await.expect(404);
}

#[tokio::test]
async fn all_faults_of_a_task_are_reported_together() {
    let world = World::start().with_relations().await;
    let user = world.user().await;
    let unknown = world.clock.id().to_string();
    let body = json!({
        "category": "party", "notes": 5, "deadline": "tomorrow", "duration_minutes": -1, "client_id": unknown,
        "project_id": unknown, "deal_id": "x",
    });
    let mut faults = user.api.post("/v1/tasks", body).await.expect(422).faults();
    faults.sort();
    let expected = [
        ("/category", "not_allowed"),
        ("/client_id", "unknown_reference"),
        ("/deadline", "not_a_time"),
        ("/deal_id", "unknown_reference"),
        ("/duration_minutes", "out_of_range"),
        ("/notes", "not_a_string"),
        ("/project_id", "unknown_reference"),
        ("/title", "required"),
    ];
    assert_eq!(faults, expected_faults(&expected));
    let task = id(&user.create("tasks", json!({"title": "T", "category": null})).await);
    let path = format!("/v1/tasks/{task}");
    assert_eq!(user.get(&path).await["data"]["category"], "task");
    let refused = user.api.patch(&path, json!({"title": "", "category": null})).await.expect(422);
    assert_eq!(refused.faults(), expected_faults(&[("/category", "not_nullable"), ("/title", "required")]));
    user.api.patch(&path, json!({"client_id": unknown})).await.expect(200);
}

#[tokio::test]
async fn a_deleted_task_is_gone_and_no_longer_counted() {
    let world = World::start().await;
    let user = world.user().await;
    let task = id(&user.create("tasks", json!({"title": "T"})).await);
    user.create("tasks", json!({"title": "Other"})).await;
    let path = format!("/v1/tasks/{task}");
    assert!(user.delete(&path).await.expect(204).body.is_empty());
    user.delete(&path).await.expect(404);
    user.api.get(&path).await.expect(404);
    assert_eq!(user.total("/v1/tasks").await, 1);
}
