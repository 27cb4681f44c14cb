use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use tower::ServiceExt;

use super::{html, problem_page, router};
use crate::openapi;

async fn ask(request: Request<Body>) -> Response {
    let router: Router = router();
    router.oneshot(request).await.unwrap()
}

async fn get(path: &str) -> Response {
    ask(Request::get(path).body(Body::empty()).unwrap()).await
}

async fn text(response: Response) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).unwrap_or_else(|| panic!("{name} is missing")).to_str().unwrap()
}

#[tokio::test]
async fn the_document_that_is_served_is_the_one_made_from_the_contract() {
    let response = get("/openapi.json").await;
    assert_eq!(header(&response, "content-type"), "application/json");
    assert_eq!(text(response).await, openapi::printed(&openapi::document(&proto::policy::commented())));
}

#[tokio::test]
async fn a_document_that_the_caller_has_is_not_sent_again() {
    let tag = header(&get("/openapi.json").await, "etag").to_owned();
    for known in [tag.clone(), format!("W/{tag}"), format!("\"other\", {tag}"), "*".to_owned()] {
        let request =
            Request::get("/openapi.json").header("if-none-match", known).body(Body::empty()).unwrap();
        let response = ask(request).await;
        assert_eq!(response.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(header(&response, "etag"), tag);
        assert_eq!(text(response).await, "");
    }
    let request =
        Request::get("/openapi.json").header("if-none-match", "\"other\"").body(Body::empty()).unwrap();
    assert_eq!(ask(request).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn every_page_answers_with_its_security_headers_and_names_no_other_host() {
    for path in [
        "/openapi.json",
        "/docs",
        "/docs/",
        "/docs/reference.js",
        "/docs/reference.css",
        "/docs/swagger-ui.css",
        "/docs/swagger-ui-bundle.js",
        "/docs/favicon-32x32.png",
        "/docs/favicon-16x16.png",
        "/problems",
        "/problems/style.css",
        "/problems/validation",
    ] {
        let response = get(path).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        assert!(header(&response, "content-security-policy").starts_with("default-src 'none'"), "{path}");
        assert!(!header(&response, "content-security-policy").contains("//"), "{path}");
        assert_eq!(header(&response, "x-content-type-options"), "nosniff", "{path}");
        assert_eq!(header(&response, "referrer-policy"), "no-referrer", "{path}");
        assert!(!header(&response, "cache-control").is_empty(), "{path}");
        if header(&response, "content-type").starts_with("text/html") {
            assert!(!text(response).await.contains("://"), "{path}");
        }
    }
}

#[tokio::test]
async fn head_answers_like_get_without_a_body() {
    let response = ask(Request::head("/docs").body(Body::empty()).unwrap()).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(header(&response, "content-type"), "text/html; charset=utf-8");
    assert_eq!(text(response).await, "");
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    for path in
        ["/docs/index.html", "/docs/../Cargo.toml", "/docs/a/b", "/problems/no_such_code", "/problems/%00"]
    {
        assert_eq!(get(path).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
    assert_eq!(problem_page("no_such_code"), None);
}

#[tokio::test]
async fn every_code_has_a_page_and_the_index_leads_to_it() {
    let index = text(get("/problems").await).await;
    for info in proto::policy::problems() {
        let path = format!("/problems/{}", info.code);
        assert!(index.contains(&format!("href=\"{path}\"")), "{path}");
        let page = text(get(&path).await).await;
        assert!(page.contains(&format!("<span>{}</span> <code>{}</code>", info.status, info.code)), "{path}");
        assert!(page.contains("<pre"), "{path}");
        assert!(!page.contains('`'), "{path}");
    }
    assert!(index.contains("<code>bad_iban</code>"));
}

#[test]
fn text_of_a_page_is_escaped_also_inside_code() {
    assert_eq!(html::inline("a < `<key>` & 'b'"), "a &lt; <code>&lt;key&gt;</code> &amp; &#39;b&#39;");
    assert_eq!(html::inline("one ` alone"), "one ` alone");
}
