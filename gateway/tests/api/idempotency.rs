use std::collections::BTreeSet;

use serde_json::json;

use crate::support::{Mesh, RELATIONS};

/// How often a request is repeated that the server asks to repeat.
const MAX_ATTEMPTS: u32 = 10_000;

#[tokio::test]
async fn a_replayed_create_returns_the_first_response_byte_for_byte() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    let first = api
        .post_keyed("/v1/clients", "key-1", json!({"company_name": "Bakery", "city": "Utrecht"}))
        .await
        .expect(201);
    assert_eq!(first.header("x-idempotent-replay"), None);
    mesh.clock.advance(chrono::TimeDelta::hours(23));
    // The same content in another order and spelling is the same request.
    let body = " {\"city\" : \"Utrecht\", \"company_name\": \"Bak\\u0065ry\"} ";
    let headers = [("content-type", "application/json; charset=utf-8"), ("idempotency-key", "key-1")];
    let second = api.send(http::Method::POST, "/v1/clients", &headers, body).await.expect(201);
    assert_eq!(second.header("x-idempotent-replay"), Some("true"));
    assert_eq!(first.body, second.body);
    assert_eq!(first.header("location"), second.header("location"));
    assert_eq!(api.get("/v1/clients").await.at("/meta/total"), 1);
}

#[tokio::test]
async fn a_key_is_bound_to_its_request_its_route_and_its_account() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    api.post_keyed("/v1/clients", "k", json!({"company_name": "Bakery"})).await.expect(201);
    for other in [
        json!({"company_name": "Butcher"}),
        json!({"company_name": "Bakery", "payment_term": "x"}),
        json!({}),
    ] {
        let reused = api.post_keyed("/v1/clients", "k", other).await.expect(422);
        assert_eq!(reused.at("/code"), "idempotency_key_reused");
    }
    api.post_keyed("/v1/suppliers", "k", json!({"company_name": "Bakery"})).await.expect(201);
    mesh.api(RELATIONS)
        .await
        .post_keyed("/v1/clients", "k", json!({"company_name": "Bakery"}))
        .await
        .expect(201);
    mesh.clock.advance(chrono::TimeDelta::hours(24));
    api.post_keyed("/v1/clients", "k", json!({"company_name": "Butcher"})).await.expect(201);
}

#[tokio::test]
async fn a_request_that_failed_frees_its_key() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    api.post_keyed("/v1/clients", "k", json!({"email": "nonsense"})).await.expect(422);
    api.post_keyed("/v1/clients", "k", json!({"company_name": "Bakery"})).await.expect(201);
}

#[tokio::test]
async fn two_hundred_concurrent_posts_with_one_key_make_one_client() {
    let mesh = Mesh::start_with(&["--rate-per-minute", "0"]).await;
    let other = mesh.another_gateway().await;
    let api = mesh.api(RELATIONS).await;
    let posts = (0..200).map(|index| {
        let api = if index % 2 == 0 { api.clone() } else { other.api_with(api.key()) };
        tokio::spawn(async move {
            // A busy server may ask for a repeat; the key makes that safe.
            let mut last = None;
            for _ in 0..MAX_ATTEMPTS {
                let answer = api.post_keyed("/v1/clients", "same", json!({"company_name": "Bakery"})).await;
                if ![409, 429, 503].contains(&answer.status.as_u16()) {
                    return answer.expect(201).body;
                }
                last = Some(answer.status);
                tokio::task::yield_now().await;
            }
            panic!("no answer after {MAX_ATTEMPTS} attempts; the last one: {last:?}");
        })
    });
    let mut bodies = BTreeSet::new();
    for post in posts.collect::<Vec<_>>() {
        bodies.insert(post.await.unwrap());
    }
    assert_eq!(bodies.len(), 1);
    let list = api.get("/v1/clients").await.expect(200);
    assert_eq!((list.at("/meta/total"), list.at("/data/0/debtor_number")), (json!(1), json!("D-00001")));
}

#[tokio::test]
async fn an_unusable_key_is_named_and_other_methods_ignore_it() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    let long = "x".repeat(256);
    for key in ["", "with space", long.as_str()] {
        let answer = api.post_keyed("/v1/clients", key, json!({"company_name": "Bakery"})).await.expect(422);
        assert_eq!(answer.faults(), [("Idempotency-Key".to_owned(), "bad_header".to_owned())], "{key:?}");
    }
    api.send(http::Method::GET, "/v1/clients", &[("idempotency-key", "with space")], "").await.expect(200);
}
