//! The audit log over the whole path of a request: every operation that changes something is in it.

use chassis_testing::TestCaller;
use chassis_transcode::contract::Operation;
use gateway::testing::Answer;
use http::Method;
use proto::audit::audit_service_client::AuditServiceClient;
use proto::audit::{AuditEntry, ListAuditRequest};
use serde_json::{Value, json};
use tonic::transport::{Channel, Endpoint};

use crate::coverage::{JSON, all_operations, body_for, path_of, things_of};
use crate::support::Mesh;

fn relations(mesh: &Mesh) -> Channel {
    Endpoint::from_shared(format!("http://{}", mesh.relations_address())).unwrap().connect_lazy()
}

async fn entries(mesh: &Mesh, account: &chassis_base::Account, wanted: ListAuditRequest) -> Vec<AuditEntry> {
    let caller = TestCaller::mesh(account, &mesh.clock);
    let answer = AuditServiceClient::new(relations(mesh)).list_audit(caller.request(wanted)).await.unwrap();
    answer.into_inner().entries
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn a_change_is_kept_with_who_asked_for_it_and_what_it_was_before() {
    let mesh = Mesh::start().await;
    let (api, account) = mesh.api_of_new_account(&["relations.read", "relations.write"]).await;
    let created = api.post("/v1/clients", json!({"company_name": "Bakery"})).await.expect(201);
    let id = created.at("/data/id").as_str().unwrap().to_owned();
    let path = format!("/v1/clients/{id}");
    let changed = api.patch(&path, json!({"company_name": "Butcher"})).await.expect(200);
    api.patch(&path, json!({"company_name": "Butcher"})).await.expect(200);

    let wanted = ListAuditRequest { entity_id: id.clone(), ..ListAuditRequest::default() };
    let found = entries(&mesh, &account, wanted).await;
    assert_eq!(found.len(), 2, "a change of nothing is none");
    let (last, first) = (&found[0], &found[1]);
    assert_eq!((last.entity_type.as_str(), last.entity_id.as_str()), ("client", id.as_str()));
    assert_eq!(last.method, "/admin.relations.v1.ClientService/UpdateClient");
    assert_eq!(last.request_id, changed.header("x-request-id").unwrap());
    assert!(api.key().contains(&last.actor), "the public part of the key");
    assert_eq!(json_of(&last.before)["company_name"], "Bakery");
    assert_eq!(json_of(&last.after)["company_name"], "Butcher");
    assert_eq!((first.before.as_str(), &json_of(&first.after)["company_name"]), ("", &json!("Bakery")));

    let (_, stranger) = mesh.api_of_new_account(&["relations.read"]).await;
    let wanted = ListAuditRequest { entity_id: id, ..ListAuditRequest::default() };
    assert!(entries(&mesh, &stranger, wanted).await.is_empty());
}

/// Whether the log of any service has an entry of the request that was answered so.
async fn is_kept(mesh: &Mesh, answer: &Answer, method: &str) -> bool {
    let request_id = answer.header("x-request-id").unwrap();
    let mut connection = mesh.database.connect().await;
    for schema in ["gateway", "relations", "automation", "billing", "crm", "work", "support"] {
        let sql = format!(
            "select count(*) > 0 from {schema}.log where request_id = $1 and method = $2 and change is not null"
        );
        let found: bool = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .bind(request_id)
            .bind(method)
            .fetch_one(&mut connection)
            .await
            .unwrap();
        if found {
            return true;
        }
    }
    false
}

/// Operations that change no record: they receive an event, and what follows from it is recorded where it happens.
const NO_CHANGE: [&str; 10] = [
    // What it carries out leaves entries of its own.
    "POST /v1/batch",
    "POST /v1/automation/trigger",
    "POST /v1/webhooks/trigger",
    "POST /v1/automation/flows/test",
    // They are drafts already.
    "POST /v1/hours/reopen",
    // It has no records in the DNS, as before.
    "POST /v1/email-domains/{domain}/verify",
    // None of them shows its place.
    "PUT /v1/pipelines",
    // The service that has the event writes the entry, under its own rpc.
    "PUT /v1/thresholds/{event}",
    // There is none to be removed.
    "DELETE /v1/corporate-identities/{id}/logo",
    // The body is no picture.
    "PUT /v1/corporate-identities/{id}/logo",
];
const REOPEN: &str = "/v1/tasks/{id}/reopen";

#[tokio::test]
async fn every_operation_that_changes_something_leaves_an_entry() {
    let mesh = Mesh::start_with(&["--rate-per-minute", "0"]).await;
    let all: Vec<&str> = gateway::scopes::all().iter().map(AsRef::as_ref).collect();
    let (api, account) = mesh.api_of_new_account(&all).await;
    let mut unseen = Vec::new();
    let operations = all_operations().into_iter().filter(|it| !it.is_public() && it.method != Method::GET);
    let name = |operation: &Operation| format!("{} {}", operation.method, operation.path);
    for operation in operations.filter(|operation| !NO_CHANGE.contains(&name(operation).as_str())) {
        // New ones for each: another operation may have ended them.
        let things = things_of(&mesh, &api, &account, &operation.path).await;
        let known = things.iter().find(|(prefix, _)| operation.path.starts_with(prefix));
        let path = path_of(&operation, known.map_or("", |(_, id)| id));
        let body = body_for(&operation, &things).to_string();
        if operation.path == REOPEN {
            // A task that is open already would stay as it is.
            api.post(&path.replace("/reopen", "/complete"), json!({})).await.expect(200);
        }
        let answer = api.send(operation.method.clone(), &path, JSON, body).await;
        let what = format!("{} {}", operation.method, operation.path);
        if answer.status.is_success() {
            assert!(is_kept(&mesh, &answer, operation.grpc_path.as_str()).await, "{what} leaves no entry");
        } else {
            unseen.push(format!("{what}: {}", String::from_utf8_lossy(&answer.body)));
        }
    }
    // A payment by its id, a subscription without lines: they have tests of their own, under the check of every
    // transaction.
    assert!(unseen.len() <= 15, "{unseen:#?}");
}
