//! Keys that an account makes itself, with no more than the key that makes them.

use http::Method;
use serde_json::{Value, json};

use crate::support::Mesh;

const KEYS: &[&str] = &["keys.read", "keys.write", "notes.read", "notes.write"];

#[tokio::test]
async fn a_key_shows_itself_its_account_and_its_limits() {
    let mesh = Mesh::start_with(&["--rate-per-minute", "600", "--rate-burst", "50"]).await;
    let (api, account) = mesh.api_of_new_account(&["notes.read"]).await;
    let me = api.get("/v1/me").await.expect(200);
    assert_eq!(me.at("/data/account/id"), account.id.to_string());
    assert_eq!(
        (me.at("/data/account/country"), me.at("/data/account/currency")),
        (json!("NL"), json!("EUR"))
    );
    assert_eq!(me.at("/data/key/scopes"), json!(["notes.read"]));
    let public_id = me.at("/data/key/public_id");
    assert!(api.key().contains(public_id.as_str().unwrap()));
    let limits = json!({"requests_per_minute": 600, "burst": 50, "body_bytes": 1_048_576, "per_page": 100});
    assert_eq!(me.at("/data/limits"), limits);
}

#[tokio::test]
async fn a_key_makes_a_key_that_works_and_ends_it() {
    let mesh = Mesh::start().await;
    let api = mesh.api(KEYS).await;
    let made = api.post("/v1/keys", json!({"name": "Shop", "scopes": ["notes.read"]})).await.expect(201);
    let secret = made.at("/data/secret");
    let shop = mesh.gateway.api_with(secret.as_str().unwrap());
    shop.get("/v1/notes").await.expect(200);
    shop.post("/v1/notes", json!({"body": "no"})).await.expect(403);
    shop.get("/v1/keys").await.expect(403);

    let listed = api.get("/v1/keys?active=1&sort=created_at&order=asc").await.expect(200);
    assert_eq!(listed.at("/meta/total"), 2);
    assert_eq!((listed.at("/data/1/name"), listed.at("/data/1/id")), (json!("Shop"), made.at("/data/id")));
    assert!(!String::from_utf8_lossy(&listed.body).contains(secret.as_str().unwrap()));

    let path = format!("/v1/keys/{}", made.at("/data/id").as_str().unwrap());
    api.send(Method::DELETE, &path, &[], "").await.expect(204);
    api.send(Method::DELETE, &path, &[], "").await.expect(204);
    let ended = api.get("/v1/keys?active=0").await.expect(200);
    assert_eq!(ended.at("/meta/total"), 1);
    assert_ne!(ended.at("/data/0/revoked_at"), Value::Null);
}

#[tokio::test]
async fn a_key_never_gets_more_than_the_key_that_makes_it() {
    let mesh = Mesh::start().await;
    let api = mesh.api(KEYS).await;
    let wide = json!({"name": "Wide", "scopes": ["notes.read", "invoices.write"]});
    let answer = api.post("/v1/keys", wide).await.expect(422);
    assert_eq!(answer.faults(), [("/scopes/1".to_owned(), "not_allowed".to_owned())]);
    let nothing = api.post("/v1/keys", json!({"name": "Nothing"})).await.expect(422);
    assert_eq!(nothing.faults(), [("/scopes".to_owned(), "required".to_owned())]);

    // A key that ends makes no key that ends later, and a strict one strict ones.
    let short =
        json!({"name": "Short", "scopes": KEYS, "expires_at": "2027-01-01T00:00:00Z", "strict": true});
    let short = api.post("/v1/keys", short).await.expect(201);
    let short = mesh.gateway.api_with(short.at("/data/secret").as_str().unwrap());
    let later = json!({"name": "Later", "scopes": ["notes.read"], "expires_at": "2027-01-02T00:00:00Z"});
    let answer = short.post("/v1/keys", later).await.expect(422);
    assert_eq!(answer.faults(), [("/expires_at".to_owned(), "out_of_range".to_owned())]);
    let made = short.post("/v1/keys", json!({"name": "Same", "scopes": ["notes.read"]})).await.expect(201);
    assert_eq!(made.at("/data/expires_at"), "2027-01-01T00:00:00.000Z");
    assert_eq!(made.at("/data/strict"), true);
}

#[tokio::test]
async fn a_key_does_not_end_one_that_may_do_more_and_knows_none_of_other_accounts() {
    let mesh = Mesh::start().await;
    let (api, account) = mesh.api_of_new_account(KEYS).await;
    let wider = mesh.gateway.api(&account, &["invoices.read"]).await;
    let id = wider.get("/v1/me").await.at("/data/key/id");
    let path = format!("/v1/keys/{}", id.as_str().unwrap());
    let answer = api.send(Method::DELETE, &path, &[], "").await.expect(403);
    assert!(answer.at("/detail").as_str().unwrap().contains("invoices.read"));
    wider.get("/v1/invoices").await.expect(200);
    let stranger = mesh.api(KEYS).await;
    stranger.send(Method::DELETE, &path, &[], "").await.expect(404);
    assert_eq!(stranger.get("/v1/keys").await.at("/meta/total"), 1);
}

#[tokio::test]
async fn the_secret_is_shown_once() {
    let mesh = Mesh::start().await;
    let api = mesh.api(KEYS).await;
    let body = json!({"name": "Shop", "scopes": ["notes.read"]});
    let made = api.post_keyed("/v1/keys", "once", body.clone()).await.expect(201);
    let repeated = api.post_keyed("/v1/keys", "once", body).await.expect(409);
    assert_eq!(repeated.at("/code"), "secret_already_shown");
    let public_id = made.at("/data/public_id");
    assert_eq!(repeated.at("/data/id"), public_id);
    let path = format!("/v1/keys/{}", public_id.as_str().unwrap());
    api.send(Method::DELETE, &path, &[], "").await.expect(204);
    assert_eq!(api.get("/v1/keys").await.at("/meta/total"), 2);
}
