//! Authorisation of every public operation, walked from the descriptor: an operation that is added is covered without further work.

use chassis_transcode::contract::Operation;
use http::Method;
use proto::work::file_service_client::FileServiceClient;
use proto::work::{FileInput, UploadFileRequest};
use serde_json::{Value, json};

use crate::support::Mesh;

pub(crate) fn all_operations() -> Vec<Operation> {
    chassis_transcode::contract::operations(proto::policy::pool()).unwrap()
}

/// Those that need a key.
fn operations() -> Vec<Operation> {
    let all = all_operations();
    let keyed: Vec<Operation> = all.into_iter().filter(|operation| !operation.is_public()).collect();
    assert!(keyed.len() > 10);
    keyed
}

/// The path with every variable replaced.
pub(crate) fn path_of(operation: &Operation, id: &str) -> String {
    let segment = |segment: &str| if segment.starts_with('{') { id.to_owned() } else { segment.to_owned() };
    operation.path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

/// A body that is right for any operation: unknown fields are ignored.
fn body() -> String {
    json!({
        "company_name": "Bakery", "client_id": "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05", "event": "some.event",
        "title": "Bread", "name": "Bread", "body": "Bread", "amount": 1, "to": "a@example.com", "subject": "S", "message": "M",
        "phase_id": "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05", "active": true, "url": "https://example.com/hooks",
    })
    .to_string()
}

pub(crate) const JSON: &[(&str, &str)] = &[("content-type", "application/json")];

#[tokio::test]
async fn every_operation_refuses_a_request_without_a_valid_key() {
    let mesh = Mesh::start_with(&["--failed-auth-per-minute", "0"]).await;
    let good = mesh.api(&["relations.read"]).await;
    let mut wrong = good.key().to_owned();
    wrong.pop();
    for operation in operations() {
        let path = path_of(&operation, "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05");
        for key in ["", "nonsense", wrong.as_str()] {
            let api = mesh.gateway.api_with(key);
            let answer = api.send(operation.method.clone(), &path, JSON, body()).await;
            assert_eq!(answer.status, 401, "{} {path} with key {key:?}", operation.method);
            assert_eq!(answer.at("/code"), "unauthenticated");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        }
    }
}

#[tokio::test]
async fn every_operation_refuses_a_key_without_its_scope() {
    let mesh = Mesh::start().await;
    let others: Vec<&str> = gateway::scopes::all().iter().map(AsRef::as_ref).collect();
    let (_, account) = mesh.api_of_new_account(&["notes.read"]).await;
    for operation in operations() {
        let scope = operation.policy.scope.as_str();
        let without: Vec<&str> = others.iter().copied().filter(|have| *have != scope).collect();
        let api = mesh.gateway.api(&account, &without).await;
        let path = path_of(&operation, "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05");
        let answer = api.send(operation.method.clone(), &path, JSON, body()).await;
        if scope == "any" {
            assert!(answer.status.is_success(), "{} {path}: {}", operation.method, answer.status);
            continue;
        }
        assert_eq!(answer.status, 403, "{} {path}", operation.method);
        assert_eq!(answer.at("/code"), "insufficient_scope");
        let challenge = answer.header("www-authenticate").unwrap();
        assert!(challenge.contains(&format!("scope=\"{scope}\"")), "{challenge}");
        let needed = mesh.gateway.api(&account, &[scope]).await;
        let allowed = needed.send(operation.method.clone(), &path, JSON, body()).await;
        assert!(
            ![401, 403].contains(&allowed.status.as_u16()),
            "{} {path}: {}",
            operation.method,
            allowed.status
        );
    }
}

#[tokio::test]
async fn every_public_operation_needs_no_key_and_knows_nothing_that_was_not_made_or_signed() {
    let mesh = Mesh::start_with(&["--public-rate-per-minute", "0"]).await;
    let (nobody, somebody) = (mesh.gateway.api_with(""), mesh.api(&["relations.read"]).await);
    let (_, account) = mesh.api_of_new_account(&["relations.read"]).await;
    let strange = chassis_rpc::Link::random(chassis_base::AccountId::trust(uuid::Uuid::new_v4())).encode();
    let unmade = chassis_rpc::Link::random(account.id).encode();
    for operation in all_operations().into_iter().filter(Operation::is_public) {
        let status = if operation.signature.is_some() { 403 } else { 404 };
        let mut errors = Vec::new();
        for token in ["x", "%00", strange.as_str(), unmade.as_str()] {
            for api in [&nobody, &somebody] {
                let path = path_of(&operation, token);
                let answer = api.send(operation.method.clone(), &path, JSON, body()).await;
                assert_eq!(answer.status, status, "{} {path}", operation.method);
                assert_eq!(answer.header("x-robots-tag"), Some("noindex"), "{path}");
                errors.push((answer.at("/code"), answer.at("/detail"), answer.at("/data")));
            }
        }
        errors.dedup();
        assert_eq!(errors.len(), 1, "{}: the error does not say why a link is unknown", operation.path);
    }
}

/// A file cannot be made over REST.
pub(crate) async fn upload(mesh: &Mesh, account: &chassis_base::Account) -> String {
    let caller = chassis_testing::TestCaller::mesh(account, &mesh.clock);
    let file = FileInput { name: "Owner's file".to_owned(), content_type: String::new() };
    let part = UploadFileRequest { file: Some(file), data: "Owner's content".into() };
    let request = caller.request(futures::stream::iter([part]));
    let answer = FileServiceClient::new(mesh.work()).upload_file(request).await.unwrap();
    answer.into_inner().data.unwrap().id
}

/// Where a thing can be looked at: at its own path, or in its list.
fn shown_at(prefix: &str, id: &str) -> String {
    if prefix == "/v1/notes/" { "/v1/notes".to_owned() } else { format!("{prefix}{id}") }
}

/// Something of every kind that has an id in a path, made in the owner's account.
pub(crate) async fn owned_ids(owner: &gateway::testing::Api) -> Vec<(&'static str, String)> {
    let client = owner.post("/v1/clients", json!({"company_name": "Owner's client"})).await.expect(201);
    let supplier = owner.post("/v1/suppliers", json!({"company_name": "Owner's supplier"})).await.expect(201);
    let id = |answer: &gateway::testing::Answer| answer.at("/data/id").as_str().unwrap().to_owned();
    let mut things = vec![("/v1/clients/", id(&client)), ("/v1/suppliers/", id(&supplier))];
    for prefix in ["/v1/invoices/", "/v1/quotes/", "/v1/workorders/"] {
        let body =
            json!({"title": "Owner's document", "client_id": id(&client), "rows": [{"name": "Owner's row"}]});
        let document = owner.post(prefix.trim_end_matches('/'), body).await.expect(201);
        things.push((prefix, id(&document)));
    }
    let product = owner.post("/v1/products", json!({"name": "Owner's product"})).await.expect(201);
    things.push(("/v1/products/", id(&product)));
    let subscription =
        owner.post("/v1/subscriptions", json!({"title": "Owner's subscription"})).await.expect(201);
    things.push(("/v1/subscriptions/", id(&subscription)));
    let deal =
        owner.post("/v1/deals", json!({"title": "Owner's deal", "client_id": id(&client)})).await.expect(201);
    things.push(("/v1/deals/", id(&deal)));
    for (prefix, body) in [
        ("/v1/projects/", json!({"name": "Owner's project"})),
        ("/v1/tasks/", json!({"title": "Owner's task"})),
        ("/v1/notes/", json!({"body": "Owner's note"})),
        ("/v1/tickets/", json!({"subject": "Owner's ticket"})),
    ] {
        let thing = owner.post(prefix.trim_end_matches('/'), body).await.expect(201);
        things.push((prefix, id(&thing)));
    }
    // An account can have only so many, and this runs for every operation.
    let earlier = owner.get("/v1/webhook-endpoints?per_page=100").await.expect(200).at("/data");
    for endpoint in earlier.as_array().unwrap() {
        let path = format!("/v1/webhook-endpoints/{}", endpoint["id"].as_str().unwrap());
        owner.send(Method::DELETE, &path, &[], "").await.expect(204);
    }
    let endpoint = json!({"url": "https://example.com", "description": "Owner's endpoint"});
    let endpoint = owner.post("/v1/webhook-endpoints", endpoint).await.expect(201);
    things.push(("/v1/webhook-endpoints/", id(&endpoint)));
    let flow = owner.get("/v1/automation/flows?trigger_type=event").await.expect(200).at("/data/0");
    let flow_id = flow["id"].as_str().unwrap().to_owned();
    owner.patch(&format!("/v1/automation/flows/{flow_id}"), json!({"active": true})).await.expect(200);
    let event = json!({"event": flow["trigger_key"], "entity_type": "Owner's thing"});
    let fired = owner.post("/v1/automation/trigger", event).await.expect(200);
    let run = fired.at("/data/runs/0/run_id").as_str().unwrap().to_owned();
    things.extend([("/v1/automation/flows/", flow_id), ("/v1/automation/runs/", run)]);
    things
}

/// [`owned_ids`], a file, and a person to link.
pub(crate) async fn things_of(
    mesh: &Mesh,
    api: &gateway::testing::Api,
    account: &chassis_base::Account,
) -> Vec<(&'static str, String)> {
    let mut things = owned_ids(api).await;
    things.push(("/v1/files/", upload(mesh, account).await));
    let person = api.post("/v1/clients", json!({"firstname": "Sanne"})).await.expect(201);
    things.push(("person", person.at("/data/id").as_str().unwrap().to_owned()));
    things
}

/// What makes each operation succeed, where a body for all does not.
pub(crate) fn body_for(path: &str, things: &[(&str, String)]) -> Value {
    let id = |prefix: &str| things.iter().find(|(of, _)| *of == prefix).map_or("", |(_, id)| id.as_str());
    match path {
        "/v1/clients/{id}/links" => json!({"client_id": id("person")}),
        "/v1/deals/{id}/move" => json!({"status": "won"}),
        "/v1/deals/{id}/lose" | "/v1/deals/{id}/win" => json!({}),
        "/v1/invoices/{id}/credit" => json!({"credit_all": true}),
        "/v1/automation/flows/{id}" => json!({"active": false}),
        _ => json!({
            "company_name": "Changed", "client_id": id("/v1/clients/"), "event": "some.event", "title": "Changed",
            "name": "Changed", "body": "Changed", "amount": 1, "to": "a@example.com", "subject": "Changed",
            "message": "M", "rows": [{"name": "Row", "unit_price": 10}], "active": true, "url": "https://example.com/hooks",
        }),
    }
}

#[tokio::test]
async fn no_operation_shows_or_changes_another_accounts_records() {
    let mesh = Mesh::start().await;
    let all: Vec<&str> = gateway::scopes::all().iter().map(AsRef::as_ref).collect();
    let (owner, account) = mesh.api_of_new_account(&all).await;
    let stranger = mesh.api(&all).await;
    let mut things = owned_ids(&owner).await;
    things.push(("/v1/files/", upload(&mesh, &account).await));
    let mut before = Vec::new();
    for (prefix, id) in &things {
        before.push(owner.get(&shown_at(prefix, id)).await.expect(200).body);
    }
    for operation in operations() {
        if !operation.path.contains('{') {
            let answer = stranger.send(operation.method.clone(), &operation.path, JSON, body()).await;
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            assert!(!text.contains("Owner's"), "{} {}: {text}", operation.method, operation.path);
            continue;
        }
        let known = things.iter().find(|(prefix, _)| operation.path.starts_with(prefix));
        let (_, id) = known.unwrap_or_else(|| panic!("make something for {} in owned_ids", operation.path));
        let theirs = stranger.send(operation.method.clone(), &path_of(&operation, id), JSON, body()).await;
        let nobodys = stranger
            .send(operation.method.clone(), &path_of(&operation, &mesh.clock.id().to_string()), JSON, body())
            .await;
        // The mandate of a client who does not exist is not an error: `client_found` says so.
        let unknown = if operation.path.ends_with("/direct-debit/mandate") { 200 } else { 404 };
        assert_eq!(theirs.status, unknown, "{} {}", operation.method, operation.path);
        let error = |answer: &gateway::testing::Answer| {
            (answer.at("/code"), answer.at("/detail"), answer.at("/data"))
        };
        assert_eq!(error(&theirs), error(&nobodys), "a foreign id must look like one that never existed");
    }
    for ((prefix, id), bytes) in things.iter().zip(before) {
        assert_eq!(owner.get(&shown_at(prefix, id)).await.body, bytes);
    }
    let list = stranger.send(Method::GET, "/v1/clients", &[], "").await;
    assert_eq!(list.at("/meta/total"), 1, "only what the stranger made in this walk");
}
