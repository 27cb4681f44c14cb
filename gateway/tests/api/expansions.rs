//! `expand`: records that an answer refers to, as their own GET shows them.

use std::collections::BTreeMap;

use chassis_transcode::Expansion;
use serde_json::{Value, json};

use crate::coverage::all_operations;
use crate::support::Mesh;

const SCOPES: &[&str] = &[
    "relations.read",
    "relations.write",
    "deals.read",
    "deals.write",
    "tasks.read",
    "tasks.write",
    "notes.read",
    "notes.write",
    "projects.read",
    "projects.write",
    "invoices.read",
    "invoices.write",
];

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// What the GET of the record says.
async fn shown(api: &gateway::testing::Api, path: &str, id: &str) -> Value {
    api.get(&format!("{path}/{id}")).await.expect(200).at("/data")
}

#[tokio::test]
async fn a_record_and_a_page_show_what_they_refer_to_as_its_own_get_shows_it() {
    let mesh = Mesh::start().await;
    let api = mesh.api(SCOPES).await;
    let client = |name: &str| api.post("/v1/clients", json!({"company_name": name, "city": "Breda"}));
    let (one, other) =
        (text(&client("One").await.at("/data/id")), text(&client("Other").await.at("/data/id")));
    let project = api.post("/v1/projects", json!({"name": "Roof", "client_id": one})).await.expect(201);
    let project = text(&project.at("/data/id"));
    for (title, client, project) in
        [("a", &one, json!(project)), ("b", &one, json!(null)), ("c", &other, json!(null))]
    {
        let task = json!({"title": title, "client_id": client, "project_id": project, "category": "task"});
        api.post("/v1/tasks", task).await.expect(201);
    }
    api.post("/v1/tasks", json!({"title": "d", "category": "task"})).await.expect(201);

    let page = api.get("/v1/tasks?expand=client,project&sort=created_at&order=asc").await.expect(200);
    let (first, second) = (shown(&api, "/v1/clients", &one).await, shown(&api, "/v1/clients", &other).await);
    let of_project = shown(&api, "/v1/projects", &project).await;
    let expected = [
        json!({"client": first, "project": of_project}),
        json!({"client": first, "project": null}),
        json!({"client": second, "project": null}),
        json!({"client": null, "project": null}),
    ];
    let expanded: Vec<Value> =
        page.at("/data").as_array().unwrap().iter().map(|task| task["expanded"].clone()).collect();
    let titles: BTreeMap<String, Value> = page
        .at("/data")
        .as_array()
        .unwrap()
        .iter()
        .map(|task| (text(&task["title"]), task["expanded"].clone()))
        .collect();
    assert_eq!(titles.into_values().collect::<Vec<_>>(), expected);
    assert_eq!(expanded.len(), 4);
    // What is besides is what it is without.
    let mut plain = page.json();
    for task in plain["data"].as_array_mut().unwrap() {
        task.as_object_mut().unwrap().remove("expanded").unwrap();
    }
    assert_eq!(plain, api.get("/v1/tasks?sort=created_at&order=asc").await.json());

    let id = text(&page.at("/data/0/id"));
    let task = api.get(&format!("/v1/tasks/{id}?expand=client")).await.expect(200);
    let names: Vec<String> = task.at("/data/expanded").as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, ["client"]);
    assert!(task.header("etag").is_some());
    assert!(api.get("/v1/tasks").await.at("/data/0/expanded").is_null());
}

#[tokio::test]
async fn what_is_expanded_is_the_present_state_and_null_once_it_is_gone() {
    let mesh = Mesh::start().await;
    let api = mesh.api(SCOPES).await;
    let client =
        text(&api.post("/v1/clients", json!({"company_name": "Before"})).await.expect(201).at("/data/id"));
    let invoice = json!({"title": "T", "client_id": client, "rows": [{"name": "Bread", "quantity": 1, "unit_price": 2}]});
    let invoice = text(&api.post("/v1/invoices", invoice).await.expect(201).at("/data/id"));
    let note = api.post("/v1/notes", json!({"body": "Look", "invoice_id": invoice})).await.expect(201);
    let path = format!("/v1/notes/?expand=invoice&id={}", text(&note.at("/data/id"))).replace("/?", "?");
    // The invoice whole, with its rows, and not as lists show it.
    assert_eq!(api.get(&path).await.expect(200).at("/data/0/expanded/invoice/rows/0/name"), "Bread");
    let of_invoice = format!("/v1/invoices/{invoice}?expand=client");
    let known = api.get(&of_invoice).await.expect(200);
    assert_eq!(known.at("/data/expanded/client/company_name"), "Before");
    api.patch(&format!("/v1/clients/{client}"), json!({"company_name": "After"})).await.expect(200);
    // The invoice has not changed, and its version says so; what it refers to has.
    let etag = known.header("etag").unwrap();
    let again = api.send(http::Method::GET, &of_invoice, &[("if-none-match", etag)], "").await.expect(200);
    assert_eq!(again.at("/data/expanded/client/company_name"), "After");
    api.send(http::Method::DELETE, &format!("/v1/invoices/{invoice}"), &[], "").await.expect(200);
    let left = api.get(&path).await.expect(200);
    assert!(left.at("/data/0/expanded/invoice").is_null(), "{}", left.json());
}

#[tokio::test]
async fn a_key_needs_the_scope_of_what_it_expands_and_names_must_be_known() {
    let mesh = Mesh::start().await;
    let (_, account) = mesh.api_of_new_account(SCOPES).await;
    let api = mesh.gateway.api(&account, &["tasks.read"]).await;
    let refused = api.get("/v1/tasks?expand=client").await.expect(403);
    assert!(refused.header("www-authenticate").unwrap().contains("relations.read"));
    let unknown = api.get("/v1/tasks?expand=client,owner,nothing").await.expect(422);
    assert_eq!(
        unknown.faults(),
        [("expand".to_owned(), "not_allowed".to_owned()), ("expand".to_owned(), "not_allowed".to_owned())]
    );
    let detail = text(&unknown.at("/errors/0/detail"));
    assert!(detail.contains("`owner`") && detail.contains("client, project"), "{detail}");
    api.get("/v1/tasks?expand=").await.expect(200);
    // Another account's reader sees nothing of it.
    let (stranger, _) = mesh.api_of_new_account(SCOPES).await;
    stranger.post("/v1/tasks", json!({"title": "x", "category": "task"})).await.expect(201);
    assert!(
        stranger.get("/v1/tasks?expand=client").await.expect(200).at("/data/0/expanded/client").is_null()
    );
    // What has no references takes the name for any other that is unknown.
    let ignored = mesh.gateway.api(&account, &["relations.read"]).await.get("/v1/clients?expand=deal").await;
    assert_eq!(ignored.expect(200).at("/meta/ignored"), json!(["?expand"]));
}

#[test]
fn every_reference_leads_to_a_kind_of_record_that_can_be_read() {
    let operations = all_operations();
    let kinds = chassis_transcode::records::RecordKinds::new(proto::policy::pool(), &operations).unwrap();
    let mut names = 0;
    for message in proto::policy::pool().all_messages() {
        for Expansion { name, kind, .. } in Expansion::of_record(&message) {
            assert!(
                kinds.get(&kind).is_some(),
                "{} refers to the kind {kind} by {name}",
                message.full_name()
            );
            names += 1;
        }
    }
    assert!(names > 20);
    // Every GET that shows a reference can expand it.
    let expandable = operations.iter().filter(|operation| !operation.expansions.is_empty()).count();
    assert!(expandable > 20, "{expandable}");
    for operation in operations.iter().filter(|operation| !operation.expansions.is_empty()) {
        assert_eq!(operation.method, http::Method::GET, "{}", operation.name);
    }
}
