//! Deleting clients: only those that nothing refers to, whoever refers to them at the same moment.

use chassis_testing::TestCaller;
use chrono::TimeDelta;
use gateway::testing::{Answer, Api};
use http::Method;
use proto::api::reference_service_client::ReferenceServiceClient;
use proto::api::{CountReferrersRequest, EndWithdrawalRequest, Reference};
use proto::relations::DeleteClientRequest;
use proto::relations::client_service_client::ClientServiceClient;
use serde_json::{Value, json};
use svc_relations::Relations;
use tonic::Code;

use crate::changes::all_scopes;
use crate::support::Mesh;

async fn create(api: &Api, path: &str, body: Value) -> String {
    api.post(path, body).await.expect(201).at("/data/id").as_str().unwrap().to_owned()
}

async fn client(api: &Api) -> String {
    create(api, "/v1/clients", json!({"company_name": "Bakery", "external_id": "x"})).await
}

async fn delete(api: &Api, path: &str) -> Answer {
    api.send(Method::DELETE, path, &[], "").await
}

#[tokio::test]
async fn a_client_that_nothing_refers_to_is_deleted_with_its_links() {
    let mesh = Mesh::start().await;
    let api = mesh.api(&all_scopes()).await;
    let company = client(&api).await;
    let person = create(&api, "/v1/clients", json!({"lastname": "Jansen"})).await;
    api.post(&format!("/v1/clients/{company}/links"), json!({"client_id": person})).await.expect(201);
    let path = format!("/v1/clients/{company}");
    let answer = delete(&api, &path).await.expect(204);
    assert!(answer.body.is_empty());
    api.get(&path).await.expect(404);
    delete(&api, &path).await.expect(404);
    api.patch(&path, json!({"city": "Utrecht"})).await.expect(404);
    let listed = api.get("/v1/clients").await.expect(200);
    assert_eq!((listed.at("/meta/total"), listed.at("/data/0/id")), (json!(1), json!(person)));
    assert_eq!(api.get("/v1/clients?contact_type=company").await.at("/meta/total"), 0);
    let changes = api.get(&format!("/v1/changes?kind=client&id={company}")).await.expect(200).at("/data");
    let last = changes.as_array().unwrap().last().unwrap();
    assert_eq!((&last["change"], &last["record"]), (&json!("deleted"), &Value::Null));
    client(&api).await;
    let refused = api.post("/v1/deals", json!({"title": "Bread", "client_id": company})).await.expect(422);
    assert_eq!(refused.faults(), [("/client_id".to_owned(), "unknown_reference".to_owned())]);
}

#[tokio::test]
async fn whatever_refers_to_a_client_is_named_and_keeps_it() {
    let mesh = Mesh::start().await;
    let api = mesh.api(&all_scopes()).await;
    let client = client(&api).await;
    let path = format!("/v1/clients/{client}");
    let rows = json!([{"name": "Bread", "unit_price": 10}]);
    for (kind, made_at, body) in [
        ("invoice", "/v1/invoices", json!({"title": "T", "rows": rows})),
        ("quote", "/v1/quotes", json!({"title": "T", "rows": rows})),
        ("workorder", "/v1/workorders", json!({"title": "T", "rows": rows})),
        ("deal", "/v1/deals", json!({"title": "T"})),
        ("project", "/v1/projects", json!({"name": "T"})),
        ("task", "/v1/tasks", json!({"title": "T"})),
        ("note", "/v1/notes", json!({"body": "T"})),
        ("ticket", "/v1/tickets", json!({"subject": "T"})),
        ("subscription", "/v1/subscriptions", json!({"title": "T"})),
    ] {
        let mut body = body;
        body["client_id"] = json!(client);
        let ids = [create(&api, made_at, body.clone()).await, create(&api, made_at, body).await];
        let refused = delete(&api, &path).await.expect(409);
        assert_eq!(refused.at("/code"), "in_use");
        assert_eq!(refused.at(&format!("/data/{kind}")), "2", "{kind}");
        let named = refused.at(&format!("/data/{kind}_ids"));
        assert!(ids.iter().all(|id| named.as_str().unwrap().contains(id)), "{kind}: {named}");
        assert!(refused.at("/detail").as_str().unwrap().contains(kind));
        api.get(&path).await.expect(200);
        let has_no_delete = ["project", "ticket", "subscription"].contains(&kind);
        for id in ids.iter().filter(|_| !has_no_delete) {
            assert!(delete(&api, &format!("{made_at}/{id}")).await.status.is_success(), "{kind}");
        }
    }
    let refused = delete(&api, &path).await.expect(409);
    let kinds = refused.at("/data").as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let expected = ["project", "project_ids", "subscription", "subscription_ids", "ticket", "ticket_ids"];
    assert_eq!(kinds, expected);
}

#[tokio::test]
async fn a_mandate_keeps_a_client() {
    let mesh = Mesh::start().await;
    let api = mesh.api(&all_scopes()).await;
    let client = client(&api).await;
    let path = format!("/v1/clients/{client}");
    api.post(&format!("{path}/direct-debit/verification"), json!({})).await;
    assert_eq!(delete(&api, &path).await.expect(409).at("/data/mandate"), "1");
}

#[tokio::test]
async fn a_delete_can_be_tried_and_needs_the_version_that_it_names() {
    let mesh = Mesh::start().await;
    let api = mesh.api(&all_scopes()).await;
    let path = format!("/v1/clients/{}", client(&api).await);
    let tried = api.send(Method::DELETE, &path, &[("dry-run", "true")], "").await.expect(200);
    assert_eq!(tried.at("/meta/dry_run/changes/0/change"), "deleted");
    let stale = api.send(Method::DELETE, &path, &[("if-match", "\"7\"")], "").await.expect(412);
    assert_eq!(stale.at("/data/version"), "1");
    // Neither has left the client withdrawn.
    let id = path.rsplit('/').next().unwrap();
    let deal = create(&api, "/v1/deals", json!({"title": "Bread", "client_id": id})).await;
    let tried = api.send(Method::DELETE, &path, &[("dry-run", "true")], "").await.expect(409);
    assert_eq!(tried.at("/data/deal_ids"), deal);
    assert!(delete(&api, &format!("/v1/deals/{deal}")).await.status.is_success());
    api.send(Method::DELETE, &path, &[("if-match", "\"1\"")], "").await.expect(204);
    api.get(&path).await.expect(404);
}

#[tokio::test]
async fn another_accounts_client_stays() {
    let mesh = Mesh::start().await;
    let (owner, stranger) = (mesh.api(&all_scopes()).await, mesh.api(&all_scopes()).await);
    let path = format!("/v1/clients/{}", client(&owner).await);
    delete(&stranger, &path).await.expect(404);
    stranger.post(&format!("{path}/anonymize"), json!({})).await.expect(404);
    let reader = mesh.api(&["relations.read"]).await;
    delete(&reader, &path).await.expect(403);
    delete(&owner, "/v1/clients/nonsense").await.expect(404);
    owner.get(&path).await.expect(200);
}

#[tokio::test]
async fn nothing_refers_to_a_client_that_is_gone_however_close_they_come() {
    let mesh = Mesh::start_with(&["--rate-per-minute", "0"]).await;
    let api = mesh.api(&all_scopes()).await;
    let (mut kept, mut gone) = (0, 0);
    for _ in 0..12 {
        let client = create(&api, "/v1/clients", json!({"company_name": "Bakery"})).await;
        let path = format!("/v1/clients/{client}");
        let makes = [
            ("/v1/deals", json!({"title": "T", "client_id": client})),
            ("/v1/invoices", json!({"title": "T", "client_id": client})),
            ("/v1/notes", json!({"body": "T", "client_id": client})),
            ("/v1/tickets", json!({"subject": "T", "client_id": client})),
        ];
        let made = futures::future::join_all(makes.iter().map(|(path, body)| api.post(path, body.clone())));
        let (deleted, made) = tokio::join!(delete(&api, &path), made);
        for answer in &made {
            assert!(
                [201, 422, 503].contains(&answer.status.as_u16()),
                "{} {:?}",
                answer.status,
                answer.json()
            );
        }
        let is_gone = deleted.status == 204;
        assert!(is_gone || deleted.status == 409, "{}", deleted.status);
        let referred = made.iter().any(|answer| answer.status == 201);
        assert!(!(is_gone && referred), "a record refers to a client that is gone");
        api.get(&path).await.expect(if is_gone { 404 } else { 200 });
        *(if is_gone { &mut gone } else { &mut kept }) += 1;
    }
    assert_eq!(gone + kept, 12);
}

#[tokio::test]
async fn while_a_client_is_withdrawn_nothing_new_refers_to_it() {
    let mesh = Mesh::start().await;
    let (api, account) = mesh.api_of_new_account(&all_scopes()).await;
    let (withdrawn, other) =
        (client(&api).await, create(&api, "/v1/clients", json!({"lastname": "O"})).await);
    let caller = TestCaller::mesh(&account, &mesh.clock);
    let mut crm = ReferenceServiceClient::new(mesh.crm());
    let withdrawal = mesh.clock.id().to_string();
    let reference = Reference { kind: "client".to_owned(), id: withdrawn.clone() };
    let request = CountReferrersRequest {
        reference: Some(reference),
        only_live: false,
        withdrawal: withdrawal.clone(),
    };
    let deal = |client: &str| json!({"title": "T", "client_id": client});
    assert_eq!(
        crm.count_referrers(caller.request(request.clone())).await.unwrap().into_inner().referrers,
        []
    );
    let refused = api.post("/v1/deals", deal(&withdrawn)).await.expect(503);
    assert_eq!((refused.at("/code"), refused.header("retry-after")), (json!("unavailable"), Some("1")));
    let of_other = create(&api, "/v1/deals", deal(&other)).await;
    let path = format!("/v1/deals/{of_other}");
    api.patch(&path, json!({"client_id": withdrawn})).await.expect(503);
    api.patch(&path, json!({"title": "Other", "client_id": other})).await.expect(200);
    api.post("/v1/notes", json!({"body": "T", "client_id": withdrawn})).await.expect(201);
    let another = EndWithdrawalRequest { withdrawal: mesh.clock.id().to_string() };
    crm.end_withdrawal(caller.request(another)).await.unwrap();
    api.post("/v1/deals", deal(&withdrawn)).await.expect(503);
    crm.end_withdrawal(caller.request(EndWithdrawalRequest { withdrawal })).await.unwrap();
    let made = create(&api, "/v1/deals", deal(&withdrawn)).await;
    let counted = crm.count_referrers(caller.request(request.clone())).await.unwrap().into_inner().referrers;
    assert_eq!(
        (counted[0].kind.as_str(), counted[0].count, &counted[0].ids),
        ("deal", 1, &vec![made.clone()])
    );
    // What was counted is not withdrawn; and a withdrawal that nobody ends is over after two minutes.
    delete(&api, &format!("/v1/deals/{made}")).await;
    assert_eq!(crm.count_referrers(caller.request(request)).await.unwrap().into_inner().referrers, []);
    api.post("/v1/deals", deal(&withdrawn)).await.expect(503);
    mesh.clock.advance(TimeDelta::seconds(121));
    create(&api, "/v1/deals", deal(&withdrawn)).await;
}

#[tokio::test]
async fn nothing_is_done_while_a_service_is_away() {
    let mesh = Mesh::start().await;
    let (api, account) = mesh.api_of_new_account(&all_scopes()).await;
    let client = client(&api).await;
    let peers = mesh.peers().iter().filter(|peer| !peer.starts_with("support=")).cloned();
    let peers: Vec<String> = peers.chain(["support=http://127.0.0.1:1".to_owned()]).collect();
    let flags = ["--peers", &peers.join(",")];
    let lonely = chassis_testing::start_with::<Relations>(mesh.database.url(), &mesh.clock, &flags).await;
    let request = TestCaller::mesh(&account, &mesh.clock)
        .with_scopes(&["relations.write"])
        .request(DeleteClientRequest { id: client.clone() });
    let refused = ClientServiceClient::new(lonely.channel()).delete_client(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    api.get(&format!("/v1/clients/{client}")).await.expect(200);
    create(&api, "/v1/deals", json!({"title": "T", "client_id": client})).await;
}
