//! What the page must never do.

use serde_json::json;

use crate::reader::Reader;

#[tokio::test]
async fn no_page_asks_another_host_and_nothing_is_blocked() {
    let Some(mut reader) = Reader::start("no_page_asks_another_host_and_nothing_is_blocked").await else {
        return;
    };
    for path in [
        "/",
        "/docs",
        "/docs/operations/createInvoice",
        "/docs/guides/webhooks",
        "/docs/events/deal.won",
        "/problems",
    ] {
        reader.open(path).await;
    }
    let issues = reader.tab.events("Audits.issueAdded");
    assert!(issues.is_empty(), "{issues:?}");
    let logged = reader.tab.events("Log.entryAdded");
    assert!(logged.is_empty(), "{logged:?}");
    for request in reader.tab.events("Network.requestWillBeSent") {
        let url = request["request"]["url"].as_str().unwrap();
        assert!(url.starts_with(&reader.host) || url.starts_with("data:") || url == "about:blank", "{url}");
    }
}

#[tokio::test]
async fn text_with_markup_and_links_to_scripts_stay_text() {
    let Some(mut reader) = Reader::start("text_with_markup_and_links_to_scripts_stay_text").await else {
        return;
    };
    reader.open("/docs").await;
    let text = "# A <b>title</b>\n\nSay `<script>` and [click](javascript:alert(1)) or [this](//other.example/x), [that](data:text/html,x) \
                and **bold <img src=x onerror=alert(1)>**.\n\n- one <i>item</i>\n  with more\n- two\n\n| a | b |\n|---|---|\n| <u>c</u> | `d` |\n\n\
                ```html\n<script>alert(1)</script>\n```\n\n[good](/docs) [also](https://example.com/?a=1)";
    let made = reader
        .promised(&format!(
            "import('/docs/assets/markdown.js').then(({{ blocks }}) => {{ const box = document.createElement('div'); box.append(...blocks({text:?}));
             return [[...new Set([...box.querySelectorAll('*')].map((element) => element.localName))].sort(),
                     [...box.querySelectorAll('a')].map((link) => link.getAttribute('href')), box.querySelectorAll('li').length,
                     box.querySelector('h1').textContent, box.querySelector('td').textContent]; }})"
        ))
        .await;
    let elements = [
        "a", "button", "code", "div", "h1", "li", "p", "pre", "strong", "table", "tbody", "td", "th",
        "thead", "tr", "ul",
    ];
    let expected = json!([elements, ["/docs", "https://example.com/?a=1"], 2, "A <b>title</b>", "<u>c</u>"]);
    assert_eq!(made, expected);
}

#[tokio::test]
async fn json_is_laid_out_without_changing_a_number() {
    let Some(mut reader) = Reader::start("json_is_laid_out_without_changing_a_number").await else { return };
    reader.open("/docs").await;
    let laid_out = reader
        .promised("import('/docs/assets/code.js').then(({ pretty }) => pretty('{\"a\":12.50,\"b\":[],\"c\":[1e2,{\"d\":\"x:{,\\\\\"\"}],\"e\":{}}'))")
        .await;
    let expected = "{\n  \"a\": 12.50,\n  \"b\": [],\n  \"c\": [\n    1e2,\n    {\n      \"d\": \"x:{,\\\"\"\n    }\n  ],\n  \"e\": {}\n}";
    assert_eq!(laid_out, expected);
}
