//! What lists can be narrowed to: by each filter alone, together with another one, and with a value that nothing has.

use chassis_testing::{assert_filters_counted, assert_filters_counted_with, expected_faults};
use serde_json::{Value, json};

use crate::support::{User, id};
use crate::world::World;

/// What a query selects, newest first, by this field. Checks the total, and that pages of one entry show the same.
async fn found(user: &User, list: &str, query: &str, field: &str) -> Vec<String> {
    let names = |answer: &Value| -> Vec<String> {
        let entries = answer["data"].as_array().unwrap();
        entries.iter().map(|entry| entry[field].as_str().unwrap().to_owned()).collect()
    };
    let answer = user.get(&format!("/v1/{list}?per_page=100&{query}")).await;
    let all = names(&answer);
    assert_eq!(answer["meta"]["total"], all.len(), "{query}");
    let mut paged = Vec::new();
    for page in 1..=all.len() {
        let answer = user.get(&format!("/v1/{list}?per_page=1&page={page}&{query}")).await;
        assert_eq!(answer["meta"]["total"], all.len(), "{query}");
        paged.extend(names(&answer));
    }
    assert_eq!(paged, all, "{query}");
    all
}

async fn task(user: &User, body: Value) -> String {
    id(&user.create("tasks", body).await)
}

#[tokio::test]
async fn tasks_are_filtered_by_everything_that_they_refer_to_and_by_their_deadline() {
    let world = World::start().with_crm().await;
    let (user, stranger) = (world.user().await, world.user().await);
    let (client, project) = (user.client("Mill").await, id(&user.project("P").await));
    let deal = id(&user.create("deals", json!({"title": "D", "client_id": client})).await);
    let call = json!({"title": "Call", "category": "call", "client_id": client, "deadline": "2026-11-20"});
    task(&user, call).await;
    // The 21st in Amsterdam.
    let late = json!({"title": "Late", "project_id": project, "deadline": "2026-11-20T23:30:00Z"});
    let late = task(&user, late).await;
    task(&user, json!({"title": "100% ÜNAL", "category": "meeting", "deal_id": deal})).await;
    task(&stranger, json!({"title": "Call", "category": "call", "deadline": "2026-11-20"})).await;
    user.api.post(&format!("/v1/tasks/{late}/complete"), json!({})).await.expect(200);
    let nobody = world.clock.id();
    for (query, expected) in [
        ("", vec!["100% ÜNAL", "Late", "Call"]),
        ("status=open", vec!["100% ÜNAL", "Call"]),
        ("status=completed", vec!["Late"]),
        ("category=call", vec!["Call"]),
        ("category=call&status=completed", vec![]),
        (&format!("client_id={client}"), vec!["Call"]),
        (&format!("client_id={client}&status=open&category=call"), vec!["Call"]),
        (&format!("project_id={project}"), vec!["Late"]),
        (&format!("deal_id={deal}"), vec!["100% ÜNAL"]),
        (&format!("client_id={nobody}"), vec![]),
        ("client_id=x", vec![]),
        ("deadline_from=2026-11-20", vec!["Late", "Call"]),
        ("deadline_from=2026-11-20&deadline_to=2026-11-20", vec!["Call"]),
        ("deadline_from=2026-11-21", vec!["Late"]),
        ("deadline_to=2026-11-19", vec![]),
        // Part of the 20th is after that.
        ("deadline_from=2026-11-20T22:00:00Z", vec!["Late", "Call"]),
        ("deadline_to=2026-11-20T23:29:00Z", vec!["Call"]),
        ("search=cal", vec!["Call"]),
        ("search=LL", vec!["Call"]),
        ("search=%C3%BCnal", vec!["100% ÜNAL"]),
        ("search=0%25", vec!["100% ÜNAL"]),
        ("search=%25%25", vec![]),
        ("status=open&sort=updated_at&order=asc", vec!["Call", "100% ÜNAL"]),
    ] {
        assert_eq!(found(&user, "tasks", query, "title").await, expected, "{query}");
    }
    let refused = user.api.get("/v1/tasks?status=late&category=party&deadline_from=soon").await.expect(422);
    let mut faults = refused.faults();
    faults.sort();
    let expected = [("category", "not_allowed"), ("deadline_from", "not_a_time"), ("status", "not_allowed")];
    assert_eq!(faults, expected_faults(&expected));
}

#[tokio::test]
async fn whatever_changes_a_task_or_a_project_changes_the_counters_of_its_filters() {
    let world = World::start().await;
    let user = world.user().await;
    let (one, two) = (task(&user, json!({"title": "A"})).await, task(&user, json!({"title": "B"})).await);
    let project = id(&user.project("P").await);
    // Old enough to be in a segment.
    world.clock.advance(chrono::TimeDelta::hours(1));
    assert_eq!(user.total("/v1/tasks?status=open").await, 2);
    user.api.post(&format!("/v1/tasks/{one}/complete"), json!({})).await.expect(200);
    user.api.post(&format!("/v1/tasks/{one}/complete"), json!({})).await.expect(200);
    user.api.patch(&format!("/v1/tasks/{two}"), json!({"category": "call"})).await.expect(200);
    assert_eq!(user.total("/v1/tasks?status=open").await, 1);
    user.api.post(&format!("/v1/tasks/{one}/reopen"), json!({})).await.expect(200);
    user.delete(&format!("/v1/tasks/{two}")).await.expect(204);
    let named = [("status/open", "completed_at is null"), ("status/completed", "completed_at is not null")];
    assert_filters_counted_with(&world.database, "task", "work.task", "true", &named).await;
    user.api.patch(&format!("/v1/projects/{project}"), json!({"status": "active"})).await.expect(200);
    assert_eq!(user.total("/v1/projects?status=planned").await, 0);
    assert_filters_counted(&world.database, "project", "work.project", "true").await;
}

#[tokio::test]
async fn projects_are_filtered_by_their_status_and_their_client() {
    let world = World::start().with_relations().await;
    let (user, stranger) = (world.user().await, world.user().await);
    let client = user.client("Mill").await;
    user.create("projects", json!({"name": "Kitchen", "status": "active", "client_id": client})).await;
    user.create("projects", json!({"name": "Roof", "status": "active"})).await;
    user.create("projects", json!({"name": "Wall", "client_id": client})).await;
    stranger.create("projects", json!({"name": "Floor", "status": "active"})).await;
    for (query, expected) in [
        ("status=active", vec!["Roof", "Kitchen"]),
        ("status=planned", vec!["Wall"]),
        ("status=on_hold", vec![]),
        (&format!("status=active&client_id={client}"), vec!["Kitchen"]),
        ("status=active&search=oo", vec!["Roof"]),
        (&format!("quote_id={client}"), vec![]),
    ] {
        assert_eq!(found(&user, "projects", query, "name").await, expected, "{query}");
    }
    let refused = user.api.get("/v1/projects?status=done").await.expect(422);
    assert_eq!(refused.faults(), expected_faults(&[("status", "not_allowed")]));
}

#[tokio::test]
async fn files_are_filtered_by_their_kind_and_their_record() {
    let world = World::start().await;
    let (user, stranger) = (world.user().await, world.user().await);
    let kept = user.upload("a.txt", "text/plain", b"a").await.id;
    let gone = user.upload("b.txt", "text/plain", b"b").await.id;
    stranger.upload("c.txt", "text/plain", b"c").await;
    user.delete(&format!("/v1/files/{gone}")).await.expect(204);
    let source = world.clock.id();
    for (query, expected) in [
        ("kind=upload".to_owned(), vec!["a.txt"]),
        ("kind=invoice".to_owned(), vec![]),
        (format!("kind=upload&id={kept}"), vec!["a.txt"]),
        (format!("source_id={source}"), vec![]),
    ] {
        assert_eq!(found(&user, "files", &query, "name").await, expected, "{query}");
    }
    let refused = user.api.get("/v1/files?kind=photo").await.expect(422);
    assert_eq!(refused.faults(), expected_faults(&[("kind", "not_allowed")]));
    assert_filters_counted(&world.database, "file", "work.file", "deleted_at is null").await;
}
