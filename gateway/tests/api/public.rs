//! Answers without an envelope, and operations without a key.

use chassis_testing::eventually;
use gateway::testing::{Answer, Api};
use http::Method;
use serde_json::json;

use crate::pages::{LARGE, Pages};

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const JSON: (&str, &str) = ("content-type", "application/json");
/// What browsers send.
const BROWSER: (&str, &str) =
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8");

fn text(answer: &Answer) -> String {
    String::from_utf8(answer.body.to_vec()).unwrap()
}

async fn start() -> (Pages, Api) {
    let pages = Pages::start(&["--public-rate-per-minute", "0"]).await;
    let api = pages.gateway.api_with("");
    (pages, api)
}

#[tokio::test]
async fn a_public_page_needs_no_key_and_goes_out_as_the_service_made_it() {
    let (pages, api) = start().await;
    let answer =
        api.send(Method::GET, "/pages/page", &[("origin", "https://other.example")], "").await.expect(200);
    assert_eq!(text(&answer), "<h1>Hello</h1>");
    for (name, value) in [
        ("content-type", Some("text/html; charset=utf-8")),
        ("cache-control", Some("no-store")),
        ("content-security-policy", Some("default-src 'none'; frame-ancestors 'none'")),
        ("x-content-type-options", Some("nosniff")),
        ("referrer-policy", Some("no-referrer")),
        ("x-robots-tag", Some("noindex")),
        ("content-disposition", None),
        ("location", None),
        ("set-cookie", None),
        ("access-control-allow-origin", None),
        ("access-control-expose-headers", None),
    ] {
        assert_eq!(answer.header(name), value, "{name}");
    }
    assert!(answer.header("x-request-id").is_some());
    let own = api.get("/pages/own").await.expect(200);
    assert_eq!(own.header("cache-control"), Some("private, max-age=60"));
    assert_eq!(own.header("content-security-policy"), Some("default-src 'self'"));
    let head = api.send(Method::HEAD, "/pages/page", &[], "").await.expect(200);
    assert_eq!((head.header("content-length"), head.body.len()), (Some("14"), 0));
    pages.gateway.api_with("nonsense").get("/pages/page").await.expect(200);
}

#[tokio::test]
async fn the_service_decides_about_status_type_and_place() {
    let (_pages, api) = start().await;
    let redirect = api.get("/pages/redirect").await.expect(303);
    assert_eq!((redirect.header("location"), redirect.header("content-type")), (Some("/pages/page"), None));
    let bytes = api.get("/pages/bytes").await.expect(200);
    assert_eq!(bytes.header("content-type"), Some("application/octet-stream"));
    assert!(api.get("/pages/empty").await.expect(204).body.is_empty());
    assert_eq!(text(&api.get("/pages/gone").await.expect(410)), "<h1>Hello</h1>");
    let envelope = api.get("/pages/page/count").await.expect(200);
    assert_eq!(envelope.json(), json!({"data": {"views": 3}, "meta": {}}));
    assert_eq!(
        (envelope.header("x-robots-tag"), envelope.header("cache-control")),
        (Some("noindex"), Some("no-store"))
    );
}

#[tokio::test]
async fn a_file_comes_as_a_whole_or_breaks_off() {
    let (pages, api) = start().await;
    for token in ["whole", "old"] {
        let file = api.get(&format!("/pages/{token}/file")).await.expect(200);
        assert!(file.body.len() == LARGE && file.body.iter().all(|byte| *byte == b'x'), "{token}");
        assert_eq!(file.header("content-type"), Some("application/pdf"));
        assert_eq!(file.header("content-disposition"), Some("attachment; filename=\"large.pdf\""));
        assert_eq!(file.header("x-robots-tag"), Some("noindex"));
    }
    let length = LARGE.to_string();
    let head = api.send(Method::HEAD, "/pages/whole/file", &[], "").await.expect(200);
    assert_eq!((head.header("content-length"), head.body.len()), (Some(length.as_str()), 0));
    for token in ["broken", "short", "odd"] {
        let broken = api.try_send(Method::GET, &format!("/pages/{token}/file"), &[], "").await;
        assert!(broken.is_err(), "{token}: whoever reads it knows that it is not whole");
    }
    assert_eq!(api.get("/pages/unknown/file").await.expect(404).at("/code"), "not_found");
    api.get("/pages/nothing/file").await.expect(500);
    let downloads = &pages.gateway.app.budgets.downloads;
    eventually("all of it is given back", async || downloads.held() == 0).await;
}

#[tokio::test]
async fn an_answer_that_cannot_be_sent_is_our_fault_and_shows_nothing_of_it() {
    let (_pages, api) = start().await;
    for token in ["split", "interim", "status", "cut"] {
        let answer = api.get(&format!("/pages/{token}")).await.expect(500);
        assert_eq!((answer.at("/code"), answer.header("set-cookie")), (json!("internal"), None), "{token}");
    }
}

#[tokio::test]
async fn an_answer_as_it_is_may_also_need_a_key() {
    let (pages, nobody) = start().await;
    let account = pages.gateway.account("Bakery").await;
    let api = pages.gateway.api(&account, &["relations.read"]).await;
    let answer = api
        .send(Method::GET, "/v1/things/thing/export", &[("origin", "https://x.example")], "")
        .await
        .expect(200);
    assert_eq!(
        (text(&answer).as_str(), answer.header("content-type")),
        ("<thing/>", Some("application/xml"))
    );
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"), "pages with a key may read it");
    assert_eq!(answer.header("x-robots-tag"), None);
    for (api, path, status, code) in [
        (&nobody, "/v1/things/thing/export", 401, "unauthenticated"),
        (&api, "/v1/things/other/export", 404, "not_found"),
    ] {
        let refused = api.send(Method::GET, path, &[BROWSER], "").await.expect(status);
        assert_eq!(refused.header("content-type"), Some("application/problem+json"));
        assert_eq!(refused.at("/code"), code);
    }
    let form = api.send(Method::POST, "/v1/things", &[FORM], "text=a").await.expect(415);
    assert_eq!(form.at("/code"), "unsupported_media_type");
}

#[tokio::test]
async fn a_public_post_takes_a_form_or_json() {
    let (_pages, api) = start().await;
    let post = async |headers: &[(&str, &str)], body: &str| {
        api.send(Method::POST, "/pages/page/answer", headers, body.to_owned()).await
    };
    let form = post(&[FORM], "name=J%C3%BCrgen&remark=a+%26+b&unknown=1").await.expect(200);
    assert_eq!(text(&form), "Jürgen|a & b");
    let form =
        post(&[("content-type", "Application/X-WWW-form-urlencoded; charset=UTF-8")], "name=a&name=b").await;
    assert_eq!(text(&form.expect(200)), "b|", "the last of a name counts");
    assert_eq!(text(&post(&[JSON], r#"{"name": "Ann"}"#).await.expect(200)), "Ann|");
    for headers in [&[][..], &[FORM], &[JSON]] {
        let empty = post(headers, "").await.expect(422);
        assert_eq!(empty.faults(), [("/name".to_owned(), "required".to_owned())]);
    }
    assert_eq!(post(&[FORM], "name=%zz").await.expect(400).at("/code"), "malformed");
    for kind in ["text/plain", "multipart/form-data; boundary=x"] {
        post(&[("content-type", kind)], "name=a").await.expect(415);
    }
    post(&[FORM], &"a".repeat((1 << 20) + 1)).await.expect(413);
    // There is no account that a key could be kept for.
    let keyed = post(&[FORM, ("idempotency-key", "no key at all")], "name=a").await.expect(200);
    assert_eq!(keyed.header("x-idempotent-replay"), None);
}

#[tokio::test]
async fn a_signed_body_of_any_type_arrives_as_it_was_sent() {
    let (_pages, api) = start().await;
    let send_signed = async |headers: &[(&str, &str)], body: &[u8]| {
        api.send(Method::POST, "/pages/signed", headers, body.to_vec()).await
    };
    let signature = ("x-sample-signature", "sha256=00ff");
    for kind in ["application/json", "application/x-www-form-urlencoded", "text/plain", "nonsense"] {
        for body in [&b"{\"broken\": "[..], b"a=%zz", b"\xff\x00", b""] {
            let answer = send_signed(&[signature, ("content-type", kind)], body).await.expect(200);
            assert_eq!(answer.body, [&b"sha256=00ff|"[..], body].concat(), "{kind}");
        }
    }
    let several = send_signed(&[signature, ("x-sample-signature", "sha256=11")], b"x").await.expect(200);
    assert_eq!(several.body, "sha256=00ff, sha256=11|x");
    let longest = "a".repeat(1024);
    send_signed(&[("x-sample-signature", &longest)], b"").await.expect(200);
    let longer = longest + "a";
    for headers in [&[][..], &[("x-sample-signature", "")], &[("x-sample-signature", longer.as_str())]] {
        assert_eq!(send_signed(headers, b"{}").await.expect(403).at("/code"), "bad_signature");
    }
    send_signed(&[signature], &vec![b'a'; 1 << 20]).await.expect(200);
    send_signed(&[signature], &vec![b'a'; (1 << 20) + 1]).await.expect(413);
}

#[tokio::test]
async fn no_other_site_may_post_or_read() {
    let (_pages, api) = start().await;
    let from = async |site: &str, headers: &[(&str, &str)]| {
        let mut headers = headers.to_vec();
        headers.push(("sec-fetch-site", site));
        api.send(Method::POST, "/pages/page/answer", &headers, "name=a").await
    };
    for site in ["cross-site", "same-site"] {
        assert_eq!(from(site, &[FORM]).await.expect(403).at("/code"), "cross_site");
        assert!(text(&from(site, &[FORM, BROWSER]).await.expect(403)).contains("<h1>"));
    }
    for site in ["same-origin", "none"] {
        from(site, &[FORM]).await.expect(200);
    }
    let question = [("origin", "https://other.example"), ("access-control-request-method", "POST")];
    let answer = api.send(Method::OPTIONS, "/pages/page/answer", &question, "").await.expect(204);
    assert_eq!(answer.header("allow"), Some("OPTIONS, POST"));
    for name in
        ["access-control-allow-origin", "access-control-allow-methods", "access-control-allow-headers"]
    {
        assert_eq!(answer.header(name), None);
    }
}

#[tokio::test]
async fn a_browser_gets_an_error_page_and_a_program_gets_json() {
    let (_pages, api) = start().await;
    for (method, path, status, heading) in [
        (Method::GET, "/pages/unknown", 404, "This page is not here"),
        (Method::GET, "/pages/%ff", 400, "The request cannot be read"),
        (Method::POST, "/pages/page/answer", 422, "Something is not right yet"),
        (Method::DELETE, "/pages/page", 405, "This path does not take this method"),
        (Method::GET, "/pages/cut", 500, "Something went wrong on our side"),
        (Method::GET, "/pages/busy", 503, "This does not work right now"),
    ] {
        let page =
            api.send(method.clone(), path, &[BROWSER, ("x-request-id", "<me>")], "").await.expect(status);
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
        let html = text(&page);
        assert!(
            html.contains(&format!("<h1>{heading}</h1>")) && html.contains("&lt;me&gt;"),
            "{path}: {html}"
        );
        assert!(!html.contains("://") && !html.contains("<script"), "{path}");
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
        for (name, value) in [("x-robots-tag", "noindex"), ("cache-control", "no-store"), ("vary", "Accept")]
        {
            assert_eq!(page.header(name), Some(value), "{path}");
        }
        let json = api.send(method, path, &[("accept", "*/*")], "").await.expect(status);
        assert_eq!(json.header("content-type"), Some("application/problem+json"), "{path}");
        assert_eq!((json.header("x-robots-tag"), json.header("vary")), (Some("noindex"), Some("Accept")));
        for name in ["retry-after", "allow"] {
            assert_eq!(page.header(name), json.header(name), "{path}");
        }
    }
    let faults = api.send(Method::POST, "/pages/page/answer", &[BROWSER], "").await;
    assert!(text(&faults).contains("<li>name is required</li>"));
    let head = api.send(Method::HEAD, "/pages/unknown", &[BROWSER], "").await.expect(404);
    assert_eq!((head.body.len(), head.header("content-type")), (0, Some("text/html; charset=utf-8")));
}

#[tokio::test]
async fn an_address_has_its_burst_of_public_requests_and_then_waits() {
    // One a minute: nothing comes back while the test runs.
    let pages = Pages::start(&["--public-rate-per-minute", "1", "--public-rate-burst", "2"]).await;
    let api = pages.gateway.api_with("");
    for left in ["\"public\";r=1", "\"public\";r=0"] {
        let answer = api.get("/pages/unknown").await.expect(404);
        assert!(answer.header("ratelimit").unwrap().starts_with(left), "{:?}", answer.header("ratelimit"));
    }
    let refused = api.get("/pages/page").await.expect(429);
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(refused.header("ratelimit-policy"), Some("\"public\";q=1;w=60"));
    let page = api.send(Method::GET, "/pages/page", &[BROWSER], "").await.expect(429);
    assert!(text(&page).contains("<h1>One moment, please</h1>") && page.header("retry-after").is_some());
    let account = pages.gateway.account("Bakery").await;
    let keyed = pages.gateway.api(&account, &["relations.read"]).await;
    keyed.get("/v1/things/thing/export").await.expect(200);
}
