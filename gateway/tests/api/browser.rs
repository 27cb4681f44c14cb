//! What browsers and probes see: request ids, HEAD, OPTIONS, cross-origin headers, pages, health.

use http::Method;

use crate::support::{Mesh, RELATIONS};

#[tokio::test]
async fn a_request_keeps_its_usable_id_and_gets_one_otherwise() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    let longest = "i".repeat(128);
    for id in ["mine-1", longest.as_str()] {
        let answer = api.send(Method::GET, "/v1/clients", &[("x-request-id", id)], "").await;
        assert_eq!(answer.header("x-request-id"), Some(id));
    }
    let too_long = "i".repeat(129);
    for id in ["", "two words", too_long.as_str()] {
        let answer = api.send(Method::GET, "/nowhere", &[("x-request-id", id)], "").await.expect(404);
        let own = answer.header("x-request-id").unwrap();
        assert!(uuid::Uuid::parse_str(own).is_ok(), "{own}");
        assert_eq!(answer.at("/meta/request_id"), own);
    }
}

#[tokio::test]
async fn head_is_get_without_a_body() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    let get = api.get("/v1/clients").await.expect(200);
    let head = api.send(Method::HEAD, "/v1/clients", &[], "").await.expect(200);
    assert!(head.body.is_empty());
    assert_eq!(head.header("content-type"), get.header("content-type"));
    assert_eq!(head.header("content-length"), get.header("content-length"));
    mesh.gateway.api_with("").send(Method::HEAD, "/v1/clients", &[], "").await.expect(401);
}

#[tokio::test]
async fn a_page_of_another_origin_may_call() {
    let mesh = Mesh::start().await;
    let api = mesh.gateway.api_with("");
    let question = [
        ("origin", "https://shop.example"),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "authorization,content-type,idempotency-key"),
    ];
    let answer = api.send(Method::OPTIONS, "/v1/clients", &question, "").await.expect(204);
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    assert_eq!(answer.header("access-control-allow-methods"), Some("GET, HEAD, OPTIONS, POST"));
    assert!(answer.header("access-control-allow-headers").unwrap().contains("Idempotency-Key"));
    let refused =
        api.send(Method::GET, "/v1/clients", &[("origin", "https://shop.example")], "").await.expect(401);
    assert_eq!(refused.header("access-control-allow-origin"), Some("*"), "a page can read errors too");
    assert!(refused.header("access-control-expose-headers").unwrap().contains("X-Request-Id"));
    let plain = api.send(Method::OPTIONS, "/v1/clients/x", &[], "").await.expect(204);
    assert_eq!(plain.header("allow"), Some("DELETE, GET, HEAD, OPTIONS, PATCH"));
    api.send(Method::OPTIONS, "/nowhere", &[], "").await.expect(404);
}

#[tokio::test]
async fn only_the_origins_that_are_named_may_call() {
    let mesh = Mesh::start_with(&["--cors-origins", "https://one.example,https://two.example"]).await;
    let api = mesh.gateway.api_with("");
    for (origin, allowed) in
        [("https://two.example", Some("https://two.example")), ("https://three.example", None)]
    {
        let answer = api.send(Method::GET, "/v1/clients", &[("origin", origin)], "").await;
        assert_eq!(answer.header("access-control-allow-origin"), allowed);
        assert_eq!(answer.header("vary"), Some("Origin"));
    }
}

#[tokio::test]
async fn pages_and_probes_need_no_key() {
    let mesh = Mesh::start().await;
    let api = mesh.gateway.api_with("");
    for path in ["/healthz", "/readyz", "/openapi.json", "/problems", "/problems/external_id_taken", "/docs/"]
    {
        let answer = api.get(path).await.expect(200);
        assert!(!answer.body.is_empty() && answer.header("x-request-id").is_some(), "{path}");
    }
    api.get("/problems/no_such_code").await.expect(404);
    let answer = api.send(Method::POST, "/openapi.json", &[], "").await.expect(405);
    assert_eq!(answer.at("/code"), "method_not_allowed");
    assert!(answer.header("allow").is_some());
    api.get("/metrics").await.expect(404);
}

#[tokio::test]
async fn a_gateway_without_a_service_is_ready_for_the_others_and_says_who_is_missing() {
    let mesh = Mesh::start().await;
    let nowhere = ["relations=http://127.0.0.1:1".to_owned()];
    let gateway = gateway::testing::TestGateway::start(&mesh.database, &mesh.clock, &nowhere, &[]).await;
    gateway.api_with("").get("/healthz").await.expect(200);
    let answer = gateway.api_with("").get("/readyz").await.expect(200);
    assert_eq!(answer.body, "ready; no answer from: relations\n");
    let answer = gateway.api_with("").get("/readyz?mesh").await.expect(503);
    assert_eq!(answer.body, "no answer from: relations\n");
}

#[tokio::test]
async fn a_gateway_that_is_asked_to_stop_is_no_longer_ready() {
    let mesh = Mesh::start().await;
    let flags = ["--drain-ms", "60000"];
    let peers = ["relations=http://127.0.0.1:1".to_owned()];
    let gateway = gateway::testing::TestGateway::start(&mesh.database, &mesh.clock, &peers, &flags).await;
    gateway.api_with("").get("/readyz").await.expect(200);
    gateway.drain();
    let answer = gateway.api_with("").get("/readyz").await.expect(503);
    assert_eq!(answer.body, "stopping\n");
    gateway.api_with("").get("/healthz").await.expect(200);
}
