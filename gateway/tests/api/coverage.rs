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

/// The path with every variable replaced. What is uploaded gets a name.
pub(crate) fn path_of(operation: &Operation, id: &str) -> String {
    let segment = |segment: &str| match segment {
        "{context}" => "sales".to_owned(),
        "{entity}" => "client".to_owned(),
        variable if variable.starts_with('{') => id.to_owned(),
        segment => segment.to_owned(),
    };
    let path = operation.path.split('/').map(segment).collect::<Vec<_>>().join("/");
    if operation.request.upload().is_some() { path + "?name=Changed.txt" } else { path }
}

/// A definition of a flow with this name.
fn definition(name: &str) -> Value {
    json!({
        "name": name,
        "trigger": "manual",
        "steps": [{"id": "note", "call": {"method": "admin.work.v1.NoteService/CreateNote", "with": {"note": {"body": "Called."}}}}],
    })
}

/// A body that is right for any operation: unknown fields are ignored.
fn body() -> String {
    json!({
        "company_name": "Bakery", "client_id": "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05", "event": "some.event",
        "title": "Bread", "name": "Bread", "body": "Bread", "amount": 1, "to": "a@example.com", "subject": "S", "message": "M",
        "phase_id": "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05", "active": true, "url": "https://example.com/hooks",
        "label": "Bread", "hours": 1, "new_name": "Bread", "from": "start", "domain": "bread.example",
        "operations": [{"method": "GET", "path": "/v1/me"}],
    })
    .to_string()
}

/// The head of a PNG of 2 by 2 pixels.
pub(crate) const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x02\x08\x06\0\0\0";
const PICTURE: &[(&str, &str)] = &[("content-type", "image/png")];
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
        let (scope, other) = (operation.policy.scope.as_str(), operation.policy.or_scope.as_str());
        let without: Vec<&str> =
            others.iter().copied().filter(|have| ![scope, other].contains(have)).collect();
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
        let besides = operation.policy.and_scope.as_str();
        if !besides.is_empty() {
            let half = mesh.gateway.api(&account, &[scope]).await;
            let answer = half.send(operation.method.clone(), &path, JSON, body()).await;
            assert!(answer.header("www-authenticate").unwrap().contains(besides), "{path}");
        }
        for enough in [scope, other].into_iter().filter(|scope| !scope.is_empty()) {
            let scopes: Vec<&str> = [enough, besides].into_iter().filter(|scope| !scope.is_empty()).collect();
            let needed = mesh.gateway.api(&account, &scopes).await;
            let allowed = needed.send(operation.method.clone(), &path, JSON, body()).await;
            assert!(
                ![401, 403].contains(&allowed.status.as_u16()),
                "{} {path} with {enough}: {}",
                operation.method,
                allowed.status
            );
        }
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
    const IN_LIST: [&str; 8] = [
        "/v1/notes/",
        "/v1/tax-rates/",
        "/v1/payment-terms/",
        "/v1/pipelines/",
        "/v1/phases/",
        "/v1/deal-sources/",
        "/v1/custom-fields/",
        "/v1/keys/",
    ];
    let is_listed = IN_LIST.contains(&prefix) || prefix.starts_with("/v1/ticket-");
    if is_listed { prefix.trim_end_matches('/').to_owned() } else { format!("{prefix}{id}") }
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
    let project = &things.iter().find(|(prefix, _)| *prefix == "/v1/projects/").unwrap().1;
    let hours = json!({"project_id": project, "hours": 1, "activity_name": "Owner's work"});
    let hours = owner.post("/v1/hours", hours).await.expect(201);
    things.push(("/v1/hours/", id(&hours)));
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

/// The settings that an account can have several of: their list, what names one, and a new one.
fn settings() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        (
            "/v1/tax-rates",
            "code",
            json!({"code": "OWNERS", "label": "Owner's rate", "type": "reduced", "context": "sales", "amount": "5"}),
        ),
        ("/v1/payment-terms", "code", json!({"code": "OWNERS", "days": 5, "label": "Owner's term"})),
        ("/v1/corporate-identities", "id", json!({"name": "Owner's identity"})),
        ("/v1/pipelines", "id", json!({"name": "Owner's pipeline", "phases": ["Owner's phase", "Another"]})),
        ("/v1/deal-sources", "name", json!({"name": "Owners"})),
        (
            "/v1/custom-fields",
            "key",
            json!({"entity": "client", "key": "owners", "label": "Owner's field", "type": "text"}),
        ),
        ("/v1/ticket-channels", "id", json!({"name": "Owner's channel"})),
        ("/v1/ticket-statuses", "id", json!({"name": "Owner's status", "order": 3})),
        ("/v1/email-domains", "domain", json!({"domain": "owners.example"})),
        ("/v1/keys", "id", json!({"name": "Owner's key", "scopes": ["notes.read"]})),
    ]
}

/// Settings of the owner's account for this path; those of every kind for `*`. An account can have only so many, so the one
/// of the last time is removed before.
pub(crate) async fn owned_settings(owner: &gateway::testing::Api, path: &str) -> Vec<(&'static str, String)> {
    let mut things = Vec::new();
    for (list, key, body) in
        settings().into_iter().filter(|(list, ..)| path == "*" || path.starts_with(*list))
    {
        let own = |entry: &Value| {
            entry[key] == body[key] || (!entry["name"].is_null() && entry["name"] == body["name"])
        };
        let earlier = owner.get(&format!("{list}?per_page=100")).await.expect(200).at("/data");
        for entry in earlier
            .as_array()
            .unwrap()
            .iter()
            .filter(|entry| own(entry) && entry["revoked_at"].is_null() && entry["is_default"] != true)
        {
            let between = match list {
                "/v1/tax-rates" => "/sales",
                "/v1/custom-fields" => "/client",
                _ => "",
            };
            let path = format!("{list}{between}/{}", entry[key].as_str().unwrap());
            owner.send(Method::DELETE, &path, &[], "").await.expect(204);
        }
        let made = owner.post(list, body.clone()).await;
        assert!(made.status.is_success(), "{list}: {}", made.json());
        let id = match list {
            "/v1/email-domains" => made.at("/data/domain/domain"),
            _ => made.at(&format!("/data/{key}")),
        };
        let prefix = list.to_owned() + "/";
        things.push((&*prefix.leak(), id.as_str().unwrap().to_owned()));
        if list == "/v1/pipelines" {
            things.push(("/v1/phases/", made.at("/data/phases/0/id").as_str().unwrap().to_owned()));
        }
        if list == "/v1/pipelines" {
            owner.post(list, json!({"name": "Another", "phases": ["One"]})).await;
        }
        let all = owner.get(list).await.expect(200).at("/data");
        let mut names: Vec<&str> =
            all.as_array().unwrap().iter().filter_map(|entry| entry[key].as_str()).collect();
        // The first pipeline stays first: deals that name none begin there.
        if let [_, others @ ..] = names.as_mut_slice() {
            others.reverse();
        }
        match list {
            "/v1/pipelines" => things.push(("all pipelines", names.join(","))),
            "/v1/deal-sources" => things.push(("all sources", names.join(","))),
            _ => {}
        }
    }
    if path == "*" || path.starts_with("/v1/phases") {
        if path != "*" {
            things.extend(Box::pin(owned_settings(owner, "/v1/pipelines")).await);
        }
        let pipeline = things.iter().find(|(prefix, _)| *prefix == "/v1/pipelines/").unwrap().1.clone();
        let phases = owner.get(&format!("/v1/phases?pipeline_id={pipeline}")).await.expect(200).at("/data");
        let ids: Vec<&str> =
            phases.as_array().unwrap().iter().rev().filter_map(|one| one["id"].as_str()).collect();
        things.push(("all phases", ids.join(",")));
    }
    if path == "*" || path.starts_with("/v1/thresholds") {
        things.push(("/v1/thresholds/", "quote.silent".to_owned()));
    }
    things
}

/// [`owned_ids`], [`owned_settings`] for this path, a file, and a person to link.
pub(crate) async fn things_of(
    mesh: &Mesh,
    api: &gateway::testing::Api,
    account: &chassis_base::Account,
    path: &str,
) -> Vec<(&'static str, String)> {
    let mut things = owned_ids(api).await;
    things.extend(owned_settings(api, path).await);
    things.push(("/v1/files/", upload(mesh, account).await));
    let person = api.post("/v1/clients", json!({"firstname": "Sanne"})).await.expect(201);
    things.push(("person", person.at("/data/id").as_str().unwrap().to_owned()));
    things
}

/// What makes each operation succeed, where a body for all does not.
pub(crate) fn body_for(operation: &Operation, things: &[(&str, String)]) -> Value {
    let id = |prefix: &str| things.iter().find(|(of, _)| *of == prefix).map_or("", |(_, id)| id.as_str());
    let all = |of: &str| id(of).split(',').collect::<Vec<_>>();
    if !operation.policy.takes.is_empty() {
        return definition("Changed");
    }
    match operation.path.as_str() {
        "/v1/tax-rates" => {
            json!({"code": "CHANGED", "label": "Changed", "type": "reduced", "context": "sales", "amount": "7"})
        }
        "/v1/batch" => json!({"operations": [{"method": "GET", "path": "/v1/me"}]}),
        "/v1/payment-terms" => json!({"code": "CHANGED", "days": 7, "label": "Changed"}),
        "/v1/billing-settings" => json!({"payment_days": 21}),
        "/v1/deal-sources" => json!({"name": "Changed", "names": all("all sources")}),
        "/v1/deal-sources/{name}" => json!({"new_name": "Renamed"}),
        "/v1/pipelines" => {
            json!({"name": "Changed", "phases": ["First"], "ids": all("all pipelines")})
        }
        "/v1/phases" => {
            json!({"pipeline_id": id("/v1/pipelines/"), "name": "Changed", "ids": all("all phases")})
        }
        "/v1/custom-fields" => {
            json!({"entity": "client", "key": "changed", "label": "Changed", "type": "text"})
        }
        "/v1/custom-fields/{entity}/{key}" => json!({"label": "Changed"}),
        "/v1/ticket-statuses/{id}" => json!({"order": 7}),
        "/v1/email-domains" => json!({"domain": "changed.example"}),
        "/v1/hours" | "/v1/hours/{id}" => {
            json!({"project_id": id("/v1/projects/"), "hours": 2, "activity_name": "Changed"})
        }
        "/v1/hours/submit" | "/v1/hours/approve" | "/v1/hours/reject" | "/v1/hours/reopen" => {
            json!({"ids": [id("/v1/hours/")]})
        }
        "/v1/projects/from-quote" => json!({"quote_id": id("/v1/quotes/")}),
        "/v1/automation/flows/test" => json!({"definition": definition("Tried"), "event": {"type": "any"}}),
        "/v1/automation/flows/{id}/start" => json!({"data": {"why": "Changed"}}),
        "/v1/automation/runs/{id}/restart" => json!({"from": "start"}),
        "/v1/automation/runs/{id}/approve" | "/v1/automation/runs/{id}/reject" => json!({"why": "Changed"}),
        "/v1/keys" => json!({"name": "Changed", "scopes": ["notes.read"]}),
        "/v1/thresholds/{event}" => json!({"value": 3}),
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
    let mesh = Mesh::start_with(&["--rate-per-minute", "0"]).await;
    let all: Vec<&str> = gateway::scopes::all().iter().map(AsRef::as_ref).collect();
    let (owner, account) = mesh.api_of_new_account(&all).await;
    let stranger = mesh.api(&all).await;
    let mut things = owned_ids(&owner).await;
    things.push(("/v1/files/", upload(&mesh, &account).await));
    things.extend(owned_settings(&owner, "*").await);
    let is_record =
        |(prefix, _): &&(&str, String)| prefix.starts_with("/v1/") && *prefix != "/v1/thresholds/";
    let records: Vec<_> = things.iter().filter(is_record).collect();
    let mut before = Vec::new();
    for (prefix, id) in &records {
        before.push(owner.get(&shown_at(prefix, id)).await.expect(200).body);
    }
    for operation in operations() {
        if !operation.path.contains('{') {
            let answer = stranger.send(operation.method.clone(), &operation.path, JSON, body()).await;
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            assert!(!text.contains("Owner's"), "{} {}: {text}", operation.method, operation.path);
            continue;
        }
        // Every account has the thresholds of every event.
        if operation.path.starts_with("/v1/thresholds/") {
            continue;
        }
        let known = things.iter().find(|(prefix, _)| operation.path.starts_with(prefix));
        let (_, id) = known.unwrap_or_else(|| panic!("make something for {} in owned_ids", operation.path));
        let of_picture = operation.path.ends_with("/logo");
        let (headers, body) = match &operation.policy.takes[..] {
            [] => (JSON, body().into_bytes()),
            _ if of_picture => (PICTURE, PNG.to_vec()),
            _ => (JSON, definition("Stranger's").to_string().into_bytes()),
        };
        let theirs =
            stranger.send(operation.method.clone(), &path_of(&operation, id), headers, body.clone()).await;
        let nobody = if operation.path.starts_with("/v1/email-domains/") {
            "nobody.example".to_owned()
        } else {
            mesh.clock.id().to_string()
        };
        let nobodys =
            stranger.send(operation.method.clone(), &path_of(&operation, &nobody), headers, body).await;
        // The mandate of a client who does not exist is not an error: `client_found` says so.
        let unknown = if operation.path.ends_with("/direct-debit/mandate") { 200 } else { 404 };
        assert_eq!(theirs.status, unknown, "{} {}", operation.method, operation.path);
        let error = |answer: &gateway::testing::Answer| {
            (answer.at("/code"), answer.at("/detail"), answer.at("/data"))
        };
        assert_eq!(error(&theirs), error(&nobodys), "a foreign id must look like one that never existed");
    }
    for ((prefix, id), bytes) in records.iter().zip(before) {
        assert_eq!(owner.get(&shown_at(prefix, id)).await.body, bytes);
    }
    let list = stranger.send(Method::GET, "/v1/clients", &[], "").await;
    assert_eq!(list.at("/meta/total"), 1, "only what the stranger made in this walk");
}

#[test]
fn every_rpc_has_a_route_or_a_reason_to_have_none() {
    let reasons = include_str!("../data/without-a-route.tsv");
    let mut listed: Vec<&str> = reasons.lines().skip(1).filter_map(|line| line.split('\t').next()).collect();
    let services = proto::policy::pool().services();
    let all = services.flat_map(|service| service.methods().collect::<Vec<_>>());
    let unrouted = all.filter(|method| proto::policy::http_rule(method).is_none());
    let mut unrouted: Vec<String> = unrouted.map(|method| method.full_name().to_owned()).collect();
    listed.sort_unstable();
    unrouted.sort_unstable();
    assert_eq!(unrouted, listed, "add a rule to the rpc, or the reason to tests/data/without-a-route.tsv");
    assert!(reasons.lines().all(|line| line.split('\t').filter(|part| !part.is_empty()).count() == 2));
}
