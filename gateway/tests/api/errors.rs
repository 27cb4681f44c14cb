use http::Method;
use serde_json::json;

use crate::support::{Mesh, RELATIONS};

const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn every_fault_of_a_bad_body_is_reported_at_once_with_its_pointer() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    let body = json!({
        "type": "government", "company_name": "x".repeat(256), "email": "no address", "phone": 5, "iban": "NL00ABNA0417164300",
        "bic": "?", "country": "XX", "website": "ftp://x", "payment_term": 366,
        "quote_expiration_days": "soon", "email_invoices": "a@example.com, nonsense", "city": "a\u{0}b",
    });
    let answer = api.post("/v1/clients", body).await.expect(422);
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    assert_eq!(answer.at("/type"), "/problems/validation");
    let mut faults = answer.faults();
    faults.sort();
    let expected = [
        ("/bic", "bad_bic"),
        ("/city", "bad_text"),
        ("/company_name", "too_long"),
        ("/country", "bad_country"),
        ("/email", "bad_email"),
        ("/email_invoices", "bad_email"),
        ("/iban", "bad_iban"),
        ("/payment_term", "out_of_range"),
        ("/phone", "not_a_string"),
        ("/quote_expiration_days", "not_an_integer"),
        ("/type", "not_allowed"),
        ("/website", "bad_url"),
    ];
    assert_eq!(faults, expected.map(|(location, code)| (location.to_owned(), code.to_owned())));
    assert_eq!(answer.at("/detail"), "12 fields are not valid.");
    assert_eq!(answer.at("/meta/request_id"), answer.header("x-request-id").unwrap());
    assert_eq!(api.get("/v1/clients").await.at("/meta/total"), 0, "nothing is half done");
}

#[tokio::test]
async fn a_fault_inside_the_wrapper_points_into_it() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    let body =
        json!({"client": {"company_name": "Bakery", "email": "x", "phone": 1}, "city": 2, "iban": "y"});
    let mut faults = api.post("/v1/clients", body).await.expect(422).faults();
    faults.sort();
    let locations: Vec<&str> = faults.iter().map(|(location, _)| location.as_str()).collect();
    assert_eq!(locations, ["/city", "/client/email", "/client/phone", "/iban"]);
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_refused_by_its_kind() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    let post = async |headers: &[(&str, &str)], body: Vec<u8>| {
        api.send(Method::POST, "/v1/clients", headers, body).await
    };
    for (body, status, code) in [
        (b"{".to_vec(), 400, "malformed"),
        (b"{\"a\": \"\xff\"}".to_vec(), 400, "malformed"),
        (b"[]".to_vec(), 422, "validation"),
        (b"\"text\"".to_vec(), 422, "validation"),
        (vec![b' '; 1_048_577], 413, "too_large"),
    ] {
        let answer = post(&[JSON], body).await.expect(status);
        assert_eq!(answer.at("/code"), code);
    }
    assert_eq!(post(&[JSON], b"[]".to_vec()).await.faults(), [(String::new(), "not_an_object".to_owned())]);
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx"] {
        let answer = post(&[("content-type", kind)], b"{}".to_vec()).await.expect(415);
        assert_eq!(answer.at("/code"), "unsupported_media_type");
    }
    post(&[], b"{\"company_name\": \"x\"}".to_vec()).await.expect(415);
    post(&[("content-type", "application/merge-patch+json")], b"{\"company_name\": \"x\"}".to_vec())
        .await
        .expect(201);
    // A body of exactly 1 MiB is read.
    let mut full = b"{\"company_name\": \"x\"}".to_vec();
    full.resize(1_048_576, b' ');
    post(&[JSON], full).await.expect(201);
}

#[tokio::test]
async fn a_bad_query_names_its_parameter() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    for (query, code) in [
        ("page=0", "out_of_range"),
        ("page=-1", "out_of_range"),
        ("page=x", "not_an_integer"),
        ("page=1.5", "not_an_integer"),
        ("page=99999999999999999999", "out_of_range"),
    ] {
        let answer = api.get(&format!("/v1/clients?{query}")).await.expect(422);
        assert_eq!(answer.faults(), [("page".to_owned(), code.to_owned())], "{query}");
    }
    let both = api.get("/v1/clients?page=0&per_page=zero").await.expect(422).faults();
    assert_eq!(both.iter().map(|(location, _)| location.as_str()).collect::<Vec<_>>(), ["per_page", "page"]);
    for malformed in ["search=%zz", "search=%ff", "%"] {
        let answer = api.get(&format!("/v1/clients?{malformed}")).await.expect(400);
        assert_eq!(answer.at("/code"), "malformed", "{malformed}");
    }
    let answer = api.get("/v1/custom-fields?entity=car").await.expect(422);
    assert_eq!(answer.faults(), [("entity".to_owned(), "not_allowed".to_owned())]);
    api.get("/v1/clients?unknown=1&contact_type=neither").await.expect(200);
}

#[tokio::test]
async fn what_does_not_exist_is_not_found_and_a_wrong_method_lists_the_right_ones() {
    let mesh = Mesh::start().await;
    let api = mesh.api(RELATIONS).await;
    for path in ["/v1", "/v1/client", "/v1/clients/", "/v2/clients"] {
        let answer = mesh.gateway.api_with("").get(path).await.expect(404);
        assert_eq!(answer.at("/code"), "not_found", "{path}");
    }
    for id in ["x", "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05", "%20", "..%2f"] {
        api.get(&format!("/v1/clients/{id}")).await.expect(404);
    }
    let answer = api.send(Method::DELETE, "/v1/clients", &[], "").await.expect(405);
    assert_eq!(
        (answer.header("allow"), answer.at("/code")),
        (Some("GET, HEAD, OPTIONS, POST"), json!("method_not_allowed"))
    );
    let answer = api.send(Method::PUT, "/v1/clients/x", &[], "").await.expect(405);
    assert_eq!(answer.header("allow"), Some("DELETE, GET, HEAD, OPTIONS, PATCH"));
}

#[tokio::test]
async fn a_service_that_is_down_gives_503_and_says_when_to_come_back() {
    let mesh = Mesh::start().await;
    let (api, account) = mesh.api_of_new_account(RELATIONS).await;
    let nowhere = ["relations=http://127.0.0.1:1".to_owned()];
    let gateway = gateway::testing::TestGateway::start(&mesh.database, &mesh.clock, &nowhere, &[]).await;
    let alone = gateway.api_with(api.key());
    for answer in [
        alone.get("/v1/clients").await,
        alone.post("/v1/clients", json!({"company_name": "x"})).await,
        alone.post_keyed("/v1/clients", "k", json!({"company_name": "x"})).await,
    ] {
        let answer = answer.expect(503);
        assert_eq!((answer.at("/code"), answer.header("retry-after")), (json!("unavailable"), Some("1")));
        assert_eq!(answer.at("/may_have_happened"), json!(null), "it was not even sent");
    }
    let _ = account;
}
