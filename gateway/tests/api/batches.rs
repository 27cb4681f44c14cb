//! `POST /v1/batch`: each operation is what it would be alone.

use gateway::testing::{Answer, Api};
use serde_json::{Value, json};

use crate::support::{Mesh, RELATIONS};

const SCOPES: &[&str] =
    &["relations.read", "relations.write", "invoices.read", "invoices.write", "deals.read", "webhooks.write"];

async fn batch(api: &Api, operations: Value) -> Answer {
    api.post("/v1/batch", json!({"operations": operations})).await
}

async fn in_order(api: &Api, operations: Value) -> Answer {
    api.post("/v1/batch", json!({"operations": operations, "order": "sequential"})).await
}

fn statuses(answer: &Answer) -> Vec<i64> {
    answer.at("/data").as_array().unwrap().iter().map(|one| one["status"].as_i64().unwrap()).collect()
}

fn client(name: &str) -> Value {
    json!({"method": "POST", "path": "/v1/clients", "body": {"company_name": name}})
}

#[tokio::test]
async fn operations_succeed_and_fail_each_on_its_own() {
    let mesh = Mesh::start().await;
    let api = mesh.api(SCOPES).await;
    let existing = api.post("/v1/clients", json!({"company_name": "There"})).await.expect(201);
    let path = format!("/v1/clients/{}", existing.at("/data/id").as_str().unwrap());
    let answer = batch(
        &api,
        json!([
            client("New"),
            {"method": "POST", "path": "/v1/clients", "body": {"email": "broken"}},
            {"method": "get", "path": format!("{path}?colour=red")},
            {"method": "PATCH", "path": path, "body": {"city": "Breda"}, "if_match": "\"7\""},
            {"method": "PATCH", "path": path, "body": {"city": "Breda"}},
            {"method": "GET", "path": "/v1/tickets"},
            {"method": "GET", "path": "/v1/nothing"},
            {"method": "DELETE", "path": "/v1/clients"},
            {"method": "GET", "path": "/v1/clients?per_page=1"},
        ]),
    )
    .await
    .expect(200);
    assert_eq!(statuses(&answer), [201, 422, 200, 412, 200, 403, 404, 405, 200], "{}", answer.json());
    let at = |pointer: &str| answer.at(&format!("/data{pointer}"));
    assert_eq!(at("/0/headers/location"), format!("/v1/clients/{}", at("/0/body/data/id").as_str().unwrap()));
    assert_eq!(at("/0/headers/etag"), "\"1\"");
    assert_eq!(at("/1/body/errors/0/pointer"), "/email");
    assert_eq!(at("/2/body/meta/ignored"), json!(["?colour"]));
    assert!(at("/3/body/data/version").as_str().is_some_and(|version| ["1", "2"].contains(&version)));
    assert_eq!(at("/4/body/data/city"), "Breda");
    assert_eq!(
        at("/5/headers/www-authenticate"),
        "Bearer error=\"insufficient_scope\", scope=\"tickets.read\""
    );
    let same = api.get(&format!("/v1/clients/{}", at("/0/body/data/id").as_str().unwrap())).await.expect(200);
    assert_eq!(same.json(), at("/0/body"), "the body is what the request alone would have");
}

#[tokio::test]
async fn in_sequential_order_a_later_operation_uses_an_earlier_answer() {
    let mesh = Mesh::start().await;
    let api = mesh.api(SCOPES).await;
    let answer = in_order(
        &api,
        json!([
            client("Bakery"),
            {"method": "POST", "path": "/v1/invoices", "body": {
                "title": "Bread", "client_id": {"$from": "0/data/id"},
                "rows": [{"name": {"$from": "0/data/company_name"}, "quantity": 1, "unit_price": 10.10}],
            }},
            {"method": "POST", "path": "/v1/invoices/{1/data/id}/finalize"},
            {"method": "GET", "path": "/v1/invoices/{1/data/id}?expand=client"},
        ]),
    )
    .await
    .expect(200);
    assert_eq!(statuses(&answer), [201, 201, 200, 200], "{}", answer.json());
    assert_eq!(answer.at("/data/3/body/data/rows/0/name"), "Bakery");
    assert_eq!(answer.at("/data/3/body/data/expanded/client/id"), answer.at("/data/0/body/data/id"));
    assert!(answer.at("/data/3/body/data/number").as_str().is_some_and(|number| !number.is_empty()));
}

#[tokio::test]
async fn in_sequential_order_nothing_is_tried_after_a_failure() {
    let mesh = Mesh::start().await;
    let api = mesh.api(SCOPES).await;
    let answer = in_order(
        &api,
        json!([
            client("First"),
            {"method": "PATCH", "path": "/v1/clients/{0/data/nothing}", "body": {"city": "Breda"}},
            client("Third"),
        ]),
    )
    .await
    .expect(200);
    assert_eq!(statuses(&answer), [201, 422, 424]);
    assert_eq!(answer.at("/data/1/body/errors/0/pointer"), "/operations/1/path");
    assert_eq!(answer.at("/data/2/body/code"), "not_tried");
    assert_eq!(api.get("/v1/clients").await.at("/meta/total"), 1);
}

#[tokio::test]
async fn a_repeat_of_a_batch_with_its_key_does_nothing_again() {
    let mesh = Mesh::start().await;
    let api = mesh.api(SCOPES).await;
    let body = json!({"operations": [
        client("One"),
        {"method": "POST", "path": "/v1/clients", "body": {"company_name": "Own"}, "idempotency_key": "own-key"},
        client("Two"),
    ]});
    let first = api.post_keyed("/v1/batch", "a-batch", body.clone()).await.expect(200);
    let again = api.post_keyed("/v1/batch", "a-batch", body.clone()).await.expect(200);
    for place in 0..3 {
        let pointer = format!("/data/{place}/body");
        assert_eq!(again.at(&pointer), first.at(&pointer));
        assert_eq!(again.at(&format!("/data/{place}/headers/x-idempotent-replay")), "true");
    }
    assert_eq!(api.get("/v1/clients").await.at("/meta/total"), 3);
    // The key of an operation holds outside the batch too.
    let own = api.post_keyed("/v1/clients", "own-key", json!({"company_name": "Own"})).await.expect(201);
    assert_eq!(own.json(), first.at("/data/1/body"));
    api.post_keyed("/v1/batch", "another", body).await.expect(200);
    assert_eq!(api.get("/v1/clients").await.at("/meta/total"), 5);
}

#[tokio::test]
async fn what_is_wrong_with_the_batch_is_told_at_once() {
    let mesh = Mesh::start().await;
    let api = mesh.api(SCOPES).await;
    let faults = |answer: Answer| answer.expect(422).faults();
    let fault = |pointer: &str, code: &str| (pointer.to_owned(), code.to_owned());
    assert_eq!(faults(batch(&api, json!([])).await), [fault("/operations", "required")]);
    let many: Vec<Value> = (0..101).map(|_| client("X")).collect();
    assert_eq!(faults(batch(&api, json!(many)).await), [fault("/operations", "too_many")]);
    let missing = faults(batch(&api, json!([{"path": "/v1/clients"}, {"method": "GET"}])).await);
    assert_eq!(missing, [fault("/operations/0/method", "required"), fault("/operations/1/path", "required")]);
    let order = api.post("/v1/batch", json!({"operations": [client("X")], "order": "random"})).await;
    assert_eq!(faults(order), [fault("/order", "not_allowed")]);
    let uses = json!([client("X"), {"method": "PATCH", "path": "/v1/clients/{0/data/id}", "body": {"city": {"$from": "0/data/city"}}}]);
    let expected = [fault("/operations/1/path", "not_allowed"), fault("/operations/1/body", "not_allowed")];
    assert_eq!(faults(batch(&api, uses).await), expected);
    assert_eq!(api.get("/v1/clients").await.at("/meta/total"), 0, "nothing was done");
    // What answers with no JSON, waits, or is a batch itself.
    let id = "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05";
    let answer = batch(
        &api,
        json!([
            {"method": "GET", "path": format!("/v1/invoices/{id}/ubl")},
            {"method": "GET", "path": "/v1/clients/export"},
            {"method": "GET", "path": "/v1/changes?wait=20"},
            {"method": "POST", "path": "/v1/batch", "body": {"operations": [client("X")]}},
            {"method": "GET", "path": "http://elsewhere.example/v1/clients"},
            {"method": "GET", "path": "no path"},
        ]),
    )
    .await
    .expect(200);
    assert_eq!(statuses(&answer), [422, 422, 422, 422, 422, 422], "{}", answer.json());
}

#[tokio::test]
async fn every_operation_counts_against_the_limit_of_the_key() {
    let mesh = Mesh::start_with(&["--rate-per-minute", "60", "--rate-burst", "5"]).await;
    let api = mesh.api(RELATIONS).await;
    let reads: Vec<Value> = (0..8).map(|_| json!({"method": "GET", "path": "/v1/clients"})).collect();
    let answer = batch(&api, json!(reads)).await.expect(200);
    let statuses = statuses(&answer);
    let allowed = statuses.iter().filter(|status| **status == 200).count();
    // The batch itself is one. The clock stands still.
    assert_eq!((allowed, statuses.len()), (4, 8), "{statuses:?}");
    assert!(statuses.iter().all(|status| [200, 429].contains(status)), "{statuses:?}");
}
