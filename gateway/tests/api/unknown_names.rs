//! Names of a request that nobody knows: told, or refused for those who ask for that.

use gateway::testing::{Answer, Api};
use http::Method;
use proto::accounts::CreateKeyRequest;
use serde_json::{Value, json};

use crate::coverage::{all_operations, body_for, path_of, things_of};
use crate::support::{Mesh, RELATIONS};

const JSON: (&str, &str) = ("content-type", "application/json");
const STRICT: (&str, &str) = ("prefer", "handling=strict");

async fn strictly(api: &Api, method: Method, path: &str, body: &Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    api.send(method, path, &[JSON, STRICT], body).await
}

fn pair(place: &str, code: &str) -> (String, String) {
    (place.to_owned(), code.to_owned())
}

#[tokio::test]
async fn an_answer_names_what_was_ignored_and_nothing_else() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    let body = json!({"company_name": "Bakery", "citty": "Delft", "id": "x", "meta": {"note": 1}});
    let made = api.post("/v1/clients?debug=1", body).await.expect(201);
    assert_eq!(made.at("/meta"), json!({"ignored": ["/citty", "/meta/note", "?debug"]}));
    let path = format!("/v1/clients/{}", made.at("/data/id").as_str().unwrap());
    let wrapped = json!({"client": {"city": "Delft", "colour": "red"}});
    let changed = api.patch(&path, wrapped).await.expect(200);
    assert_eq!(changed.at("/data/city"), "Delft");
    assert_eq!(changed.at("/meta"), json!({"ignored": ["/client/colour"]}));
    let listed = api.get("/v1/clients?per_page=5&town=Delft&town=Gouda").await.expect(200);
    assert_eq!((listed.at("/meta/total"), listed.at("/meta/ignored")), (json!(1), json!(["?town"])));
    let back = api.patch(&path, changed.at("/data")).await.expect(200);
    assert_eq!(back.at("/meta"), json!({}), "what an answer shows can be sent back");
    assert_eq!(api.get("/v1/clients").await.expect(200).at("/meta/ignored"), Value::Null);
}

#[tokio::test]
async fn a_replay_and_a_rehearsal_name_what_was_ignored_as_the_first_answer_does() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    let body = json!({"company_name": "Bakery", "citty": "Delft"});
    let first = api.post_keyed("/v1/clients", "one", body.clone()).await.expect(201);
    let again = api.post_keyed("/v1/clients", "one", body.clone()).await.expect(201);
    assert_eq!((&first.body, again.header("x-idempotent-replay")), (&again.body, Some("true")));
    assert_eq!(again.at("/meta/ignored"), json!(["/citty"]));
    let tried = api.send(Method::POST, "/v1/clients", &[JSON, ("dry-run", "true")], body.to_string()).await;
    assert_eq!(tried.at("/meta/ignored"), json!(["/citty"]));
    assert_eq!(tried.at("/meta/dry_run/changes/0/kind"), "client");
    let path = format!("/v1/clients/{}", first.at("/data/id").as_str().unwrap());
    let headers = [JSON, ("dry-run", "true")];
    let tried = api.send(Method::DELETE, &path, &headers, r#"{"reason": "old"}"#).await.expect(200);
    assert_eq!((tried.at("/data"), tried.at("/meta/ignored")), (Value::Null, json!(["/reason"])));
}

#[tokio::test]
async fn strict_handling_refuses_unknown_names_beside_other_faults_and_does_nothing() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    let body = json!({"company_nam": "Bakery", "email": 5});
    let refused = strictly(&api, Method::POST, "/v1/clients?debug=1", &body).await.expect(422);
    assert_eq!(refused.at("/code"), "validation");
    assert_eq!(refused.header("preference-applied"), Some("handling=strict"));
    let faults = refused.faults();
    for expected in [
        pair("/email", "not_a_string"),
        pair("/company_nam", "unknown_field"),
        pair("debug", "unknown_field"),
    ] {
        assert!(faults.contains(&expected), "{expected:?} in {faults:?}");
    }
    let details = refused.at("/errors");
    let said = |text: &str| {
        details.as_array().unwrap().iter().any(|entry| entry["detail"].as_str().unwrap().ends_with(text))
    };
    assert!(said("did you mean `company_name`?"), "{details}");
    assert_eq!(api.get("/v1/clients").await.expect(200).at("/meta/total"), 0);
    let made =
        strictly(&api, Method::POST, "/v1/clients", &json!({"company_name": "Bakery"})).await.expect(201);
    assert_eq!(made.header("preference-applied"), Some("handling=strict"));
    let path = format!("/v1/clients/{}", made.at("/data/id").as_str().unwrap());
    let back = strictly(&api, Method::PATCH, &path, &made.at("/data")).await.expect(200);
    assert_eq!(back.at("/data/meta/version"), made.at("/data/meta/version"));
    let list = strictly(&api, Method::GET, "/v1/clients?serach=a", &Value::Null).await.expect(422);
    assert_eq!(list.faults(), [pair("serach", "unknown_field")]);
    assert!(list.at("/errors/0/detail").as_str().unwrap().ends_with("did you mean `search`?"));
    assert!(api.get("/v1/clients").await.expect(200).header("preference-applied").is_none());
}

#[tokio::test]
async fn a_strict_key_is_always_strict() {
    let mesh = Mesh::start().await;
    let (plain, account) = mesh.api_of_new_account(RELATIONS).await;
    let strict = mesh
        .gateway
        .api_with_key(CreateKeyRequest {
            account: account.id.to_string(),
            name: "Tests".to_owned(),
            scopes: RELATIONS.iter().map(ToString::to_string).collect(),
            strict: true,
            ..CreateKeyRequest::default()
        })
        .await;
    let body = json!({"company_name": "Bakery", "citty": "Delft"});
    let headers = [JSON, ("prefer", "handling=lenient")];
    let refused = strict.send(Method::POST, "/v1/clients", &headers, body.to_string()).await.expect(422);
    assert_eq!(refused.faults(), [pair("/citty", "unknown_field")]);
    assert!(refused.header("preference-applied").is_none(), "it did not ask");
    plain.post("/v1/clients", body).await.expect(201);
}

#[tokio::test]
async fn every_operation_with_a_key_refuses_unknown_parameters_when_asked() {
    let mesh = Mesh::start_with(&["--rate-per-minute", "0"]).await;
    let all: Vec<&str> = gateway::scopes::all().iter().map(AsRef::as_ref).collect();
    let (api, account) = mesh.api_of_new_account(&all).await;
    let things = things_of(&mesh, &api, &account, "*").await;
    let (mut walked, mut overlooked) = (0, Vec::new());
    for operation in all_operations().iter().filter(|operation| !operation.is_public()) {
        let known = things.iter().find(|(prefix, _)| operation.path.starts_with(prefix));
        let path = path_of(operation, known.map_or("", |(_, id)| id));
        let body = if operation.method == Method::GET { Value::Null } else { body_for(operation, &things) };
        let answer = strictly(&api, operation.method.clone(), &format!("{path}?xyzzy=1"), &body).await;
        if operation.request.takes_raw_body() || operation.request.upload().is_some() {
            continue;
        }
        let is_named = answer.faults().contains(&pair("xyzzy", "unknown_field"));
        // What is not there, or cannot be done, may be refused for that.
        if !is_named && !matches!(answer.status.as_u16(), 404 | 409) {
            overlooked.push(format!("{} {path}: {} {}", operation.method, answer.status, answer.at("/code")));
        }
        walked += 1;
    }
    assert!(overlooked.is_empty(), "{overlooked:#?}");
    assert!(walked > 80, "{walked}");
}

#[tokio::test]
async fn a_body_that_is_not_expected_is_told_and_what_is_no_json_is_ignored() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    let made = api.post("/v1/clients", json!({"company_name": "Bakery"})).await.expect(201);
    let path = format!("/v1/clients/{}", made.at("/data/id").as_str().unwrap());
    let refused = strictly(&api, Method::DELETE, &path, &json!({"reason": "old"})).await.expect(422);
    assert_eq!(refused.faults(), [pair("/reason", "unknown_field")]);
    for (kind, body) in [("application/json", "{\"a\""), ("text/plain", "a")] {
        let answer =
            api.send(Method::DELETE, &path, &[("content-type", kind), ("dry-run", "true")], body).await;
        assert_eq!((answer.status.as_u16(), answer.at("/meta/ignored")), (200, Value::Null));
    }
}

#[tokio::test]
async fn a_page_takes_whatever_a_browser_sends() {
    let mesh = Mesh::start().await;
    let visitor = mesh.gateway.api_with("");
    let answer = visitor.send(Method::GET, "/documents/none?utm_source=mail", &[STRICT], "").await;
    assert_eq!(answer.status, 404);
    assert!(answer.header("preference-applied").is_none());
}
