//! Versions, `ETag`, `If-None-Match` and `If-Match`, for every operation of the contract.

use gateway::testing::{Answer, Api};
use http::Method;
use serde_json::json;

use crate::coverage::{JSON, all_operations, body_for, path_of, things_of};
use crate::support::Mesh;

async fn with(api: &Api, method: Method, path: &str, header: (&str, &str), body: &str) -> Answer {
    api.send(method, path, &[("content-type", "application/json"), header], body.to_owned()).await
}

/// The version that the answer shows.
fn version(answer: &Answer) -> Option<i64> {
    answer.at("/data/meta/version").as_i64().or(answer.at("/data/version").as_i64())
}

#[tokio::test]
async fn every_answer_with_one_record_has_its_version_as_etag() {
    let mesh = Mesh::start_with(&["--rate-per-minute", "0"]).await;
    let all: Vec<&str> = gateway::scopes::all().iter().map(AsRef::as_ref).collect();
    let (api, account) = mesh.api_of_new_account(&all).await;
    let things = things_of(&mesh, &api, &account, "*").await;
    let mut known = 0;
    for operation in all_operations() {
        let is_record = operation.envelope().is_some_and(chassis_transcode::ResponsePlan::has_version);
        if operation.method != Method::GET || !is_record {
            continue;
        }
        let Some((_, id)) = things.iter().find(|(prefix, _)| operation.path.starts_with(prefix)) else {
            panic!("make something for {}", operation.path);
        };
        let path = path_of(&operation, id);
        let answer = api.get(&path).await;
        if answer.status == 404 {
            assert!(operation.path.contains("{message_id}"), "{path}");
            continue;
        }
        let answer = answer.expect(200);
        let Some(version) = version(&answer).filter(|version| *version > 0) else {
            // A client without a mandate has no record of one.
            assert!(path.ends_with("/direct-debit/mandate"), "{path}");
            continue;
        };
        let etag = answer.header("etag").unwrap().to_owned();
        assert_eq!(etag, format!("\"{version}\""), "{path}");
        let same = with(&api, Method::GET, &path, ("if-none-match", &etag), "").await;
        if operation.answered.as_ref().is_some_and(|answered| answered.is_volatile) {
            same.expect(200);
            continue;
        }
        assert_eq!((same.status.as_u16(), same.body.len()), (304, 0), "{path}");
        assert_eq!(same.header("etag"), Some(etag.as_str()));
        with(&api, Method::GET, &path, ("if-none-match", "\"9999\""), "").await.expect(200);
        known += 1;
    }
    assert!(known > 12, "{known}");
}

#[tokio::test]
async fn every_change_of_a_record_is_refused_when_somebody_else_was_faster() {
    let mesh = Mesh::start_with(&["--rate-per-minute", "0"]).await;
    let all: Vec<&str> = gateway::scopes::all().iter().map(AsRef::as_ref).collect();
    let (api, account) = mesh.api_of_new_account(&all).await;
    let mut walked = 0;
    for operation in all_operations().into_iter().filter(|operation| operation.target.is_some()) {
        // Payments, messages and deliveries are below something else; the record of the path counts all the same.
        let is_below = operation.path.matches('{').count() > 1;
        let things = things_of(&mesh, &api, &account, &operation.path).await;
        let (prefix, id) = things.iter().find(|(prefix, _)| operation.path.starts_with(prefix)).unwrap();
        // Its body is a picture.
        if operation.path.ends_with("/logo") && operation.method == Method::PUT {
            continue;
        }
        let own = format!("{prefix}{id}");
        let path = path_of(&operation, id);
        let before = api.get(&own).await;
        let body = body_for(&operation, &things).to_string();
        let stale = with(&api, operation.method.clone(), &path, ("if-match", "\"999\""), &body).await;
        if is_below {
            assert!(
                [404, 412].contains(&stale.status.as_u16()),
                "{} {path}: {}",
                operation.method,
                stale.status
            );
            continue;
        }
        assert_eq!(stale.status, 412, "{} {path}", operation.method);
        assert_eq!(stale.at("/code"), "changed_meanwhile", "{path}");
        let after = api.get(&own).await;
        assert_eq!(
            after.at("/data"),
            before.at("/data"),
            "{} {path} has changed something",
            operation.method
        );
        let present = stale.at("/data/version").as_str().unwrap().to_owned();
        if let Some(version) = version(&before) {
            assert_eq!(present, version.to_string(), "{path}");
        }
        let etag = format!("\"1\", \"{present}\"");
        let fresh = with(&api, operation.method.clone(), &path, ("if-match", &etag), &body).await;
        assert_ne!(fresh.status, 412, "{} {path}", operation.method);
        walked += 1;
    }
    assert!(walked > 20, "{walked}");
}

#[tokio::test]
async fn of_two_changes_of_one_version_one_is_made() {
    let mesh = Mesh::start().await;
    let (api, _) = mesh.api_of_new_account(&["tasks.read", "tasks.write"]).await;
    let task = api.post("/v1/tasks", json!({"title": "Bake"})).await.expect(201);
    assert_eq!(task.header("etag"), Some("\"1\""));
    let path = format!("/v1/tasks/{}", task.at("/data/id").as_str().unwrap());
    for round in 1..=5 {
        let etag = format!("\"{round}\"");
        let rename = |name: &str| json!({"title": format!("{name} {round}")}).to_string();
        let (one, other) = (rename("one"), rename("other"));
        let (one, other) = tokio::join!(
            with(&api, Method::PATCH, &path, ("if-match", &etag), &one),
            with(&api, Method::PATCH, &path, ("if-match", &etag), &other)
        );
        let mut statuses = [one.status.as_u16(), other.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 412]);
    }
    assert_eq!(version(&api.get(&path).await), Some(6));
}

#[tokio::test]
async fn a_condition_that_cannot_be_checked_is_refused_and_a_repeat_gets_its_answer() {
    let mesh = Mesh::start().await;
    let (api, _) = mesh.api_of_new_account(&["tasks.read", "tasks.write"]).await;
    let body = json!({"title": "Bake"}).to_string();
    let refused = with(&api, Method::POST, "/v1/tasks", ("if-match", "\"1\""), &body).await.expect(422);
    assert_eq!(refused.at("/errors/0/header"), "If-Match");
    with(&api, Method::POST, "/v1/tasks", ("if-match", "*"), &body).await.expect(201);

    let task = api.post("/v1/tasks", json!({"title": "Sell"})).await.expect(201);
    let path = format!("/v1/tasks/{}/complete", task.at("/data/id").as_str().unwrap());
    let headers = [("if-match", "\"1\""), ("idempotency-key", "complete-once")];
    let headers: Vec<(&str, &str)> = JSON.iter().copied().chain(headers).collect();
    let first = api.send(Method::POST, &path, &headers, "{}".to_owned()).await.expect(200);
    assert_eq!(first.header("etag"), Some("\"2\""));
    let repeat = api.send(Method::POST, &path, &headers, "{}".to_owned()).await.expect(200);
    assert_eq!((&repeat.body, repeat.header("etag")), (&first.body, Some("\"2\"")));
    // However its id is written, and never without saying so.
    let id = task.at("/data/id").as_str().unwrap().to_ascii_uppercase().replacen('-', "%2D", 1);
    let escaped = format!("/v1/tasks/{id}/reopen");
    with(&api, Method::POST, &escaped, ("if-match", "\"1\""), "{}").await.expect(412);
    for empty in ["", ",", " , "] {
        let refused = with(&api, Method::POST, &path, ("if-match", empty), "{}").await.expect(422);
        assert_eq!(refused.at("/errors/0/header"), "If-Match", "{empty:?}");
    }
    for unknown in ["W/\"2\"", "\"two\"", "2, nonsense\""] {
        let matches = unknown.starts_with('2');
        let answer = with(&api, Method::POST, &path, ("if-match", unknown), "{}").await;
        assert_eq!(answer.status == 412, !matches, "{unknown}");
    }
}
