use std::collections::BTreeSet;
use std::io::Read;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;
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
async fn whoever_takes_gzip_gets_a_fraction_and_whoever_does_not_gets_the_file() {
    let whole = text(get("/openapi.json").await).await;
    for (accepted, is_small) in [
        ("gzip, deflate, br", true),
        ("GZIP;q=0.5", true),
        ("gzip;q=0", false),
        ("gzip;q=0.000", false),
        ("br", false),
    ] {
        let request =
            Request::get("/openapi.json").header("accept-encoding", accepted).body(Body::empty()).unwrap();
        let response = ask(request).await;
        assert_eq!(header(&response, "vary"), "Accept-Encoding");
        assert_eq!(response.headers().contains_key("content-encoding"), is_small, "{accepted}");
        let tag = header(&response, "etag").to_owned();
        let content = response.into_body().collect().await.unwrap().to_bytes();
        if is_small {
            let mut found = String::new();
            flate2::read::GzDecoder::new(content.as_ref()).read_to_string(&mut found).unwrap();
            assert!(found == whole && content.len() * 5 < whole.len(), "{accepted}");
            let again = Request::get("/openapi.json").header("accept-encoding", accepted);
            let again = ask(again.header("if-none-match", tag).body(Body::empty()).unwrap()).await;
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "a compressed file is known again");
        } else {
            assert!(content == whole.as_bytes(), "{accepted}");
        }
    }
}

#[tokio::test]
async fn the_reference_weighs_less_than_300_kilobytes_in_all() {
    let page = text(get("/docs").await).await;
    let named = page.split('"').filter(|part| part.starts_with("/docs/assets/") || *part == "/openapi.json");
    let mut to_load: BTreeSet<String> = named.map(str::to_owned).collect();
    to_load.extend(["/docs".to_owned(), "/docs/assets/guides.json".to_owned()]);
    let (mut loaded, mut size) = (BTreeSet::new(), 0);
    while let Some(path) = to_load.pop_first() {
        let request = Request::get(&path).header("accept-encoding", "gzip").body(Body::empty()).unwrap();
        let response = ask(request).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        size += response.into_body().collect().await.unwrap().to_bytes().len();
        // What a script imports is named by its import.
        let content = text(get(&path).await).await;
        let imported = content.split("from \"./").skip(1).filter_map(|rest| rest.split('"').next());
        let imported: Vec<_> = imported.map(|name| format!("/docs/assets/{name}")).collect();
        loaded.insert(path);
        to_load.extend(imported.into_iter().filter(|path| !loaded.contains(path)));
    }
    assert!(loaded.len() > 20, "{loaded:?}");
    assert!(size < 300_000, "{size} bytes");
}

#[tokio::test]
async fn no_script_makes_markup_of_text_or_names_another_host() {
    for name in [
        "main.js",
        "dom.js",
        "markdown.js",
        "fields.js",
        "operation.js",
        "pages.js",
        "try.js",
        "search.js",
        "searchbox.js",
    ] {
        let script = text(get(&format!("/docs/assets/{name}")).await).await;
        for forbidden in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("]
        {
            assert!(!script.contains(forbidden), "{name}: {forbidden}");
        }
    }
    for name in ["main.js", "document.js", "try.js", "style.css", "theme.js"] {
        assert!(!text(get(&format!("/docs/assets/{name}")).await).await.contains("://"), "{name}");
    }
}

#[tokio::test]
async fn every_link_of_a_guide_leads_somewhere() {
    let guides = text(get("/docs/assets/guides.json").await).await;
    let guides: Value = serde_json::from_str(&guides).unwrap();
    let mut seen = 0;
    for guide in guides.as_array().unwrap() {
        for link in guide["text"].as_str().unwrap().split("](/").skip(1) {
            let path = format!("/{}", link.split([')', '#']).next().unwrap());
            assert_eq!(get(&path).await.status(), StatusCode::OK, "{}: {path}", guide["name"]);
            seen += 1;
        }
        assert_eq!(
            get(&format!("/docs/guides/{}", guide["name"].as_str().unwrap())).await.status(),
            StatusCode::OK
        );
    }
    assert!(seen > 20);
}

#[tokio::test]
async fn every_operation_of_the_document_has_a_page() {
    let document: Value = serde_json::from_str(&text(get("/openapi.json").await).await).unwrap();
    let items = document["paths"].as_object().unwrap().values();
    for operation in items.flat_map(|item| item.as_object().unwrap().values()) {
        let path = format!("/docs/operations/{}", operation["operationId"].as_str().unwrap());
        assert_eq!(get(&path).await.status(), StatusCode::OK, "{path}");
    }
}

#[tokio::test]
async fn every_page_answers_with_its_security_headers_and_names_no_other_host() {
    for path in [
        "/openapi.json",
        "/docs",
        "/docs/",
        "/docs/operations/listClients",
        "/docs/guides/webhooks",
        "/docs/events/invoice.paid",
        "/docs/areas/Direct%20debit",
        "/docs/assets/main.js",
        "/docs/assets/style.css",
        "/docs/assets/icon.svg",
        "/docs/assets/guides.json",
        "/",
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
    for path in [
        "/docs/index.html",
        "/docs/../Cargo.toml",
        "/docs/a/b",
        "/docs/operations/noSuchOperation",
        "/docs/guides/",
        "/docs/assets/page.html",
        "/docs/assets/",
        "/problems/no_such_code",
        "/problems/%00",
    ] {
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
