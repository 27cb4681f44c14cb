//! Links that lead nowhere, and texts that would like to be more than text.

use chassis_rpc::Link;
use http::Method;
use serde_json::json;

use crate::world::{World, says, text};

#[tokio::test]
async fn a_link_that_leads_nowhere_is_a_page_that_says_so() {
    let world = World::start().await;
    let quote = world.final_quote().await;
    let token = quote.page.rsplit('/').next().unwrap();
    let own = Link::parse(token).unwrap();
    let foreign = world.gateway.account("Ander").await;
    let wrong = [
        Link { account: foreign.id, secret: own.secret }.encode(),
        Link::random(own.account).encode(),
        token[..42].to_owned(),
        format!("{token}A"),
        "%3Cscript%3E".to_owned(),
    ];
    for token in wrong {
        for (method, end) in [(Method::GET, ""), (Method::GET, "/pdf"), (Method::POST, "/accept")] {
            let path = format!("/documents/{token}{end}");
            let answer = world.visitor.send(method, &path, &[("accept", "text/html")], "").await.expect(404);
            says(&text(&answer), &["This page is not here"]);
        }
    }
    assert_eq!(world.count_events(&quote, "quote.viewed").await, 0);
}

#[tokio::test]
async fn a_key_of_another_account_opens_nothing_more_and_nothing_less() {
    let world = World::start().await;
    let quote = world.final_quote().await;
    let foreign = world.gateway.account("Ander").await;
    let api = world.gateway.api(&foreign, &["invoices.read"]).await;
    api.get(&quote.page).await.expect(200);
}

#[tokio::test]
async fn what_people_write_stays_text() {
    let world = World::start().await;
    let script = "<script>alert(1)</script>";
    let quote = world
        .create(
            "quotes",
            json!({
                "title": format!("{script}\" onload='x' {{{{ 7*7 }}}} {{% raw %}}"),
                "number": "Q/<b>\"'&",
                "rows": [{
                    "name": "</style><img src=https://evil.example/x>",
                    "title": "\u{202e}gnp.exe שלום عالم\n<svg onload=x>",
                    "unit": "</td><td>",
                    "unit_price": 1,
                }],
            }),
        )
        .await;
    let answer = world.open(&quote.page).await.expect(200);
    let page = text(&answer);
    for never in ["<script", "<img", "<svg", "<b>\"", "onload='", "</td><td>", " 49 "] {
        assert!(!page.contains(never), "{never}");
    }
    says(&page, &["&lt;script&gt;alert(1)", "{{ 7*7 }}", "{% raw %}", "<p dir=\"auto\">\u{202e}gnp.exe"]);
    assert_eq!(page.matches("<style>").count(), 2);
    let pdf = world.open(&format!("{}/pdf", quote.page)).await.expect(200);
    assert_eq!(pdf.header("content-disposition"), Some("inline; filename=\"Q--b.pdf\""));
}

#[tokio::test]
async fn a_page_lets_in_its_own_style_and_nothing_else() {
    let world = World::start().await;
    let quote = world.final_quote().await;
    let answer = world.open(&quote.page).await.expect(200);
    let policy = answer.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(
        !policy.contains("unsafe") && !policy.contains('*') && !policy.contains("script-src"),
        "{policy}"
    );
    assert!(policy.contains("form-action 'self'") && policy.contains("frame-ancestors 'none'"), "{policy}");
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("cache-control", "no-store"),
        ("x-robots-tag", "noindex"),
        ("referrer-policy", "no-referrer"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name}");
    }
    let page = text(&answer);
    assert!(!page.contains("://") && !page.contains("<script") && !page.contains(" style="));
    says(&page, &["<html lang=\"nl\">", "<meta name=\"robots\" content=\"noindex\">"]);
}
