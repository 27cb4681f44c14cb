//! `Dry-Run: true`, for every operation of the contract: the answer that would come, and no effect.

use gateway::testing::{Answer, Api};
use http::Method;
use serde_json::{Value, json};

use crate::coverage::{all_operations, body_for, path_of, things_of};
use crate::support::Mesh;

async fn tried(api: &Api, method: Method, path: &str, body: &Value) -> Answer {
    let headers = [("content-type", "application/json"), ("dry-run", "true")];
    api.send(method, path, &headers, body.to_string()).await
}

/// The ends of all logs: what changes anything changes one of them.
async fn heads(api: &Api) -> Value {
    api.get("/v1/ledger").await.expect(200).at("/data")
}

/// Without what every attempt has anew: ids, numbers, times, links and secrets.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (name.clone(), shape(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(shape).collect()),
        Value::String(_) => json!("text"),
        other => other.clone(),
    }
}

#[tokio::test]
async fn every_operation_can_be_tried_without_effect_and_then_done_with_the_same_answer() {
    let mesh = Mesh::start_with(&["--rate-per-minute", "0"]).await;
    let all: Vec<&str> = gateway::scopes::all().iter().map(AsRef::as_ref).collect();
    let (api, account) = mesh.api_of_new_account(&all).await;
    let (mut walked, mut refused) = (0, Vec::new());
    for operation in all_operations() {
        if operation.is_public() || operation.method == Method::GET {
            continue;
        }
        let things = things_of(&mesh, &api, &account, &operation.path).await;
        let known = things.iter().find(|(prefix, _)| operation.path.starts_with(prefix));
        let path = path_of(&operation, known.map_or("", |(_, id)| id));
        let body = body_for(&operation, &things);
        let before = heads(&api).await;
        let answer = tried(&api, operation.method.clone(), &path, &body).await;
        assert_eq!(heads(&api).await, before, "{} {path} has had an effect", operation.method);
        if answer.at("/code") == "cannot_rehearse" {
            refused.push(operation.path.clone());
            continue;
        }
        let done = api
            .send(operation.method.clone(), &path, &[("content-type", "application/json")], body.to_string())
            .await;
        if !done.status.is_success() {
            assert_eq!((answer.status, answer.at("/code")), (done.status, done.at("/code")), "{path}");
            continue;
        }
        let expected = if done.status == 204 { 200 } else { done.status.as_u16() };
        assert_eq!(answer.status, expected, "{} {path}: {}", operation.method, answer.at("/detail"));
        assert_eq!(answer.header("dry-run"), Some("true"), "{path}");
        assert!(done.header("dry-run").is_none() && done.at("/meta/dry_run").is_null());
        let changes = answer.at("/meta/dry_run/changes").as_array().unwrap().len();
        let has_changed = heads(&api).await != before;
        assert_eq!(changes > 0, has_changed, "{} {path}: {}", operation.method, answer.at("/meta/dry_run"));
        let (mut would, is) = (answer.at("/data"), done.at("/data"));
        // A PDF is made after the commit.
        if !would["pdf"].is_null() {
            would["pdf"].clone_from(&is["pdf"]);
            would["meta"].clone_from(&is["meta"]);
        }
        let is = if done.status == 204 { Value::Null } else { is };
        assert_eq!(shape(&would), shape(&is), "{} {path}", operation.method);
        walked += 1;
    }
    assert!(walked > 40, "{walked}");
    refused.sort();
    assert_eq!(
        refused,
        [
            "/v1/batch",
            "/v1/clients/{id}/direct-debit/verification",
            "/v1/email-domains/{domain}",
            "/v1/email-domains/{domain}/verify",
            "/v1/invoices/{id}/collect",
            "/v1/thresholds/{event}",
            "/v1/webhook-endpoints/{id}/deliveries/{delivery_id}/redeliver",
            "/v1/webhook-endpoints/{id}/test"
        ]
    );
}

#[tokio::test]
async fn what_would_come_of_it_is_named_and_a_key_stays_unused() {
    let mesh = Mesh::start().await;
    let all: Vec<&str> = gateway::scopes::all().iter().map(AsRef::as_ref).collect();
    let (api, _) = mesh.api_of_new_account(&all).await;
    let flow = api.get("/v1/automation/flows?trigger_type=event&per_page=100").await.expect(200).at("/data");
    let created = flow.as_array().unwrap().iter().find(|flow| flow["trigger_key"] == "customer.created");
    let headers = [("content-type", "application/json"), ("dry-run", "TRUE"), ("idempotency-key", "once")];
    let body = json!({"company_name": "Bakery"}).to_string();
    if let Some(flow) = created {
        let path = format!("/v1/automation/flows/{}", flow["id"].as_str().unwrap());
        api.patch(&path, json!({"active": true})).await.expect(200);
    }
    let answer = api.send(Method::POST, "/v1/clients", &headers, body.clone()).await.expect(201);
    let id = answer.at("/data/id");
    assert_eq!(
        answer.at("/meta/dry_run/changes"),
        json!([{"kind": "client", "id": id, "change": "created"}])
    );
    assert_eq!(answer.at("/meta/dry_run/events"), json!(["customer.created"]));
    if let Some(flow) = created {
        assert_eq!(answer.at("/meta/dry_run/flows/0/id"), flow["id"]);
    }
    api.get(&format!("/v1/clients/{}", id.as_str().unwrap())).await.expect(404);
    // Not used up: the same key makes it now, and the number was not taken either.
    let made = api.send(Method::POST, "/v1/clients", &[headers[0], headers[2]], body).await.expect(201);
    assert_eq!(made.header("x-idempotent-replay"), None);
    assert_eq!(made.at("/data/debtor_number"), answer.at("/data/debtor_number"));

    let wrong = [("content-type", "application/json"), ("dry-run", "maybe")];
    let refused = api.send(Method::POST, "/v1/clients", &wrong, "{}".to_owned()).await.expect(422);
    assert_eq!(refused.at("/errors/0/header"), "Dry-Run");
    let invalid = tried(&api, Method::POST, "/v1/clients", &json!({"email": "nonsense"})).await.expect(422);
    assert_eq!(invalid.at("/code"), "validation");
}
