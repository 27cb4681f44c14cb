//! Automation as an integration sees it: the shapes of flows, runs and triggers, events and webhook endpoints.

use chassis_base::AccountId;
use chassis_testing::eventually;
use chrono::TimeDelta;
use gateway::accounts::Accounts;
use gateway::credentials::Credentials;
use proto::accounts::account_service_server::AccountService;
use proto::accounts::credential_service_server::CredentialService;
use proto::accounts::{
    CreateKeyRequest, IssueCredentialRequest, NarrowKeyRequest, RevokeCredentialRequest, RevokeKeyRequest,
};
use serde_json::{Value, json};

use crate::support::Mesh;

const SCOPES: &[&str] = &["automation.read", "automation.write", "webhooks.write"];

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

impl Mesh {
    /// Waits until this is what automation knows of a key.
    async fn until_synced(&self, account: AccountId, key: &str, expected: &[&str]) {
        eventually("automation knows", async || {
            let sql = "select scopes from automation.key_scopes where account_id = $1 and key_id = $2";
            let scopes: Option<Vec<String>> = sqlx::query_scalar(sql)
                .bind(account)
                .bind(key)
                .fetch_optional(&mut self.database.connect().await)
                .await
                .unwrap();
            scopes.is_some_and(|scopes| scopes == expected)
        })
        .await;
    }
}

/// One of the flows that every account starts with, switched on.
async fn active_flow(api: &gateway::testing::Api) -> (String, String) {
    let flows = api.get("/v1/automation/flows?trigger_type=event&active=0").await.expect(200);
    let flow = flows.at("/data/0");
    let id = flow["id"].as_str().unwrap().to_owned();
    api.patch(&format!("/v1/automation/flows/{id}"), json!({"active": true})).await.expect(200);
    (id, flow["trigger_key"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_flow_has_the_shape_of_the_contract_and_can_be_switched() {
    let mesh = Mesh::start().await;
    let api = mesh.api(SCOPES).await;
    let (id, _) = active_flow(&api).await;
    let path = format!("/v1/automation/flows/{id}");
    let flow = api.get(&path).await.expect(200).at("/data");
    let mut expected = vec![
        "id",
        "name",
        "description",
        "category",
        "trigger_type",
        "trigger_key",
        "active",
        "step_count",
        "created_at",
        "updated_at",
        "meta",
    ];
    expected.sort_unstable();
    let mut found = keys(&flow);
    found.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!((&flow["active"], &flow["trigger_type"]), (&json!(true), &json!("event")));
    for (query, total) in
        [("active=true", 1), ("active=1&trigger_type=manual", 0), ("trigger_type=event&active=1", 1)]
    {
        let list = api.get(&format!("/v1/automation/flows?{query}")).await.expect(200);
        assert_eq!(list.at("/meta/total"), total, "{query}");
    }
    for body in [json!({}), json!({"active": null}), json!({"active": "yes"})] {
        let refused = api.patch(&path, body).await.expect(422);
        assert_eq!(refused.faults()[0].0, "/active");
    }
    api.get("/v1/automation/flows?trigger_type=magic").await.expect(422);
}

#[tokio::test]
async fn both_triggers_start_runs_that_can_be_seen_and_cancelled() {
    let mesh = Mesh::start().await;
    let api = mesh.api(SCOPES).await;
    let (flow, event) = active_flow(&api).await;
    let body = json!({"event": event, "data": {"id": "x"}, "entity_type": "thing", "legacy_entity_id": 7});
    let fired = api.post_keyed("/v1/automation/trigger", "k", body.clone()).await.expect(200);
    assert_eq!(fired.at("/data/event"), event);
    assert_eq!((fired.at("/data/matched"), fired.at("/data/runs/0/flow_id")), (json!(1), json!(flow)));
    let again = api.post_keyed("/v1/automation/trigger", "k", body).await.expect(200);
    assert_eq!((again.header("x-idempotent-replay"), &again.body), (Some("true"), &fired.body));
    let hooked = api.post("/v1/webhooks/trigger", json!({"event": event, "entity_id": 8})).await.expect(200);
    assert_eq!((hooked.at("/data/runs/0/flow_guid"), hooked.at("/meta")), (json!(flow), json!({})));
    let none = api.post("/v1/webhooks/trigger", json!({"event": "nobody.waits"})).await.expect(200);
    assert_eq!((none.at("/data/matched"), none.at("/data/runs")), (json!(0), json!([])));

    let id = fired.at("/data/runs/0/run_id").as_str().unwrap().to_owned();
    let run = api.get(&format!("/v1/automation/runs/{id}")).await.expect(200).at("/data");
    let mut expected = vec![
        "id",
        "flow_id",
        "flow_name",
        "status",
        "trigger_type",
        "trigger_key",
        "entity_type",
        "attempts",
        "max_attempts",
        "actions_done",
        "error",
        "created_at",
        "updated_at",
        "next_attempt_at",
        "meta",
    ];
    expected.sort_unstable();
    let mut found = keys(&run);
    found.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(
        (&run["status"], &run["entity_type"], &run["next_attempt_at"]),
        (&json!("queued"), &json!("thing"), &json!(""))
    );
    assert_eq!(api.get("/v1/automation/runs").await.expect(200).at("/meta/total"), 2);
    let cancel = format!("/v1/automation/runs/{id}/cancel");
    for _ in 0..2 {
        let cancelled = api.post(&cancel, json!({})).await.expect(200);
        assert_eq!(cancelled.at("/data"), json!({"id": id, "status": "cancelled"}));
    }
    for (query, total) in [("status=cancelled", 1), ("status=odd", 0), ("flow_id=x", 0)] {
        let list = api.get(&format!("/v1/automation/runs?{query}")).await.expect(200);
        assert_eq!(list.at("/meta/total"), total, "{query}");
    }
    let by_flow = api.get(&format!("/v1/automation/runs?flow_id={flow}&status=queued")).await.expect(200);
    assert_eq!(by_flow.at("/meta/total"), 1);
    assert_eq!(api.get("/v1/events").await.expect(200).at("/meta/total"), 3);
}

#[tokio::test]
async fn a_webhook_endpoint_shows_its_secret_once() {
    let mesh = Mesh::start().await;
    let api = mesh.api(SCOPES).await;
    let made =
        api.post("/v1/webhook-endpoints", json!({"url": "https://example.com/hooks"})).await.expect(201);
    assert!(made.at("/data/secret").as_str().unwrap().starts_with("whsec_"));
    let path = format!("/v1/webhook-endpoints/{}", made.at("/data/id").as_str().unwrap());
    assert_eq!(made.header("location"), Some(path.as_str()));
    assert_eq!(api.get(&path).await.expect(200).at("/data/secret"), Value::Null);
    let changed = api.patch(&path, json!({"types": ["invoice.paid"], "active": false})).await.expect(200);
    assert_eq!(
        (changed.at("/data/types/0"), changed.at("/data/active")),
        (json!("invoice.paid"), json!(false))
    );
    let rotated = api.post(&format!("{path}/rotate-secret"), json!({})).await.expect(200);
    assert_ne!(rotated.at("/data/secret"), made.at("/data/secret"));
    assert_eq!(api.get(&format!("{path}/deliveries")).await.expect(200).at("/meta/total"), 0);
    let private =
        api.post("/v1/webhook-endpoints", json!({"url": "http://169.254.169.254/latest"})).await.expect(422);
    assert_eq!(private.faults(), [("/url".to_owned(), "bad_url".to_owned())]);
    api.send(http::Method::DELETE, &path, &[], "").await.expect(204);
    api.get(&path).await.expect(404);
}

#[tokio::test]
async fn automation_learns_that_a_key_was_narrowed_or_revoked_however_late_it_starts() {
    let mesh = Mesh::start().await;
    let (api, account) = mesh.api_of_new_account(&["webhooks.write", "tickets.read", "deals.read"]).await;
    api.post("/v1/webhook-endpoints", json!({"url": "https://example.com/hooks"})).await.expect(201);
    let key: String = sqlx::query_scalar("select public_id from gateway.api_key where account_id = $1")
        .bind(account.id)
        .fetch_one(&mut mesh.database.connect().await)
        .await
        .unwrap();
    let accounts = Accounts::new(mesh.gateway.app.runtime.clone());
    let runtime = &mesh.gateway.app.runtime;
    let scopes = vec!["webhooks.write".to_owned(), "deals.read".to_owned(), "notes.read".to_owned()];
    let narrow = NarrowKeyRequest { key: key.clone(), scopes };
    accounts.narrow_key(runtime.local_request("test", narrow)).await.unwrap();
    // Automation did not learn of it then: the gateway's background work begins only now.
    let _working = mesh.gateway.working();
    mesh.until_synced(account.id, &key, &["deals.read", "webhooks.write"]).await;
    let revoke = RevokeKeyRequest { key: key.clone() };
    accounts.revoke_key(runtime.local_request("test", revoke)).await.unwrap();
    mesh.until_synced(account.id, &key, &[]).await;
}

#[tokio::test]
async fn automation_learns_that_a_key_has_expired() {
    let mesh = Mesh::start().await;
    let account = mesh.gateway.account("Bakery").await;
    let runtime = &mesh.gateway.app.runtime;
    let input = CreateKeyRequest {
        account: account.id.to_string(),
        name: "Short".to_owned(),
        scopes: vec!["webhooks.write".to_owned(), "tickets.read".to_owned()],
        expires_at: Some(chassis_base::time::timestamp(mesh.clock.now() + TimeDelta::hours(1))),
        ..CreateKeyRequest::default()
    };
    let made = Accounts::new(runtime.clone()).create_key(runtime.local_request("test", input)).await;
    let key = made.unwrap().into_inner().key.unwrap().public_id;
    let _working = mesh.gateway.working();
    mesh.clock.advance(TimeDelta::hours(2));
    mesh.until_synced(account.id, &key, &[]).await;
}

#[tokio::test]
async fn automation_learns_that_a_credential_was_revoked() {
    let mesh = Mesh::start().await;
    let account = mesh.gateway.account("Bakery").await;
    let runtime = &mesh.gateway.app.runtime;
    let credentials = Credentials::new(runtime.clone());
    let input = IssueCredentialRequest {
        team: "Reporting".to_owned(),
        accounts: vec![account.id.to_string()],
        scopes: vec!["webhooks.write".to_owned()],
        ..IssueCredentialRequest::default()
    };
    let made = credentials.issue_credential(runtime.local_request("test", input)).await;
    let id = made.unwrap().into_inner().credential.unwrap().public_id;
    let input = RevokeCredentialRequest { credential: id.clone() };
    credentials.revoke_credential(runtime.local_request("test", input)).await.unwrap();
    let _working = mesh.gateway.working();
    mesh.until_synced(account.id, &id, &[]).await;
}

#[tokio::test]
async fn automation_learns_the_last_of_two_changes_of_one_moment() {
    let mesh = Mesh::start().await;
    let (_, account) = mesh.api_of_new_account(&["webhooks.write", "tickets.read", "deals.read"]).await;
    let key: String = sqlx::query_scalar("select public_id from gateway.api_key where account_id = $1")
        .bind(account.id)
        .fetch_one(&mut mesh.database.connect().await)
        .await
        .unwrap();
    let runtime = &mesh.gateway.app.runtime;
    let accounts = Accounts::new(runtime.clone());
    let narrow = async |scopes: &[&str]| {
        let scopes = scopes.iter().map(ToString::to_string).collect();
        let input = NarrowKeyRequest { key: key.clone(), scopes };
        accounts.narrow_key(runtime.local_request("test", input)).await.unwrap();
    };
    narrow(&["webhooks.write", "deals.read"]).await;
    // The first is sent, and not marked as synced yet, when the second comes; the clock stands still.
    let mut holder = mesh.database.connect().await;
    sqlx::raw_sql("begin; lock automation.key_scopes in share mode").execute(&mut holder).await.unwrap();
    let _working = mesh.gateway.working();
    eventually("automation is being called", async || {
        let sql = "select exists (select from pg_stat_activity
                   where datname = current_database() and wait_event_type = 'Lock')";
        sqlx::query_scalar(sql).fetch_one(&mut mesh.database.connect().await).await.unwrap()
    })
    .await;
    narrow(&["webhooks.write"]).await;
    sqlx::raw_sql("rollback").execute(&mut holder).await.unwrap();
    mesh.until_synced(account.id, &key, &["webhooks.write"]).await;
}

#[tokio::test]
async fn a_request_that_automation_caused_is_as_deep_as_it_says() {
    let mesh = Mesh::start().await;
    let api = mesh.api(SCOPES).await;
    let (_, event) = active_flow(&api).await;
    let body = json!({"event": event, "data": {}}).to_string();
    for (depth, status) in [("7", "queued"), ("8", "failed")] {
        let headers = [("content-type", "application/json"), ("x-automation-depth", depth)];
        let path = "/v1/automation/trigger";
        let fired = api.send(http::Method::POST, path, &headers, body.clone()).await.expect(200);
        let id = fired.at("/data/runs/0/run_id").as_str().unwrap().to_owned();
        let run = api.get(&format!("/v1/automation/runs/{id}")).await.expect(200).at("/data");
        assert_eq!(run["status"], status, "{run}");
    }
}
