//! Pages, links between them, and the way back.

use serde_json::{Value, json};

use crate::reader::Reader;

#[tokio::test]
async fn every_operation_event_area_and_guide_is_shown() {
    let Some(mut reader) = Reader::start("every_operation_event_area_and_guide_is_shown").await else {
        return;
    };
    reader.open("/docs").await;
    // Follows each link of the navigation, and says which page has another heading than it should, or lacks a part.
    let wrong = reader
        .promised(
            "(async () => {
                const document_ = await (await fetch('/openapi.json')).json();
                const operations = Object.values(document_.paths).flatMap((item) => Object.values(item));
                const links = [...document.querySelectorAll('#navigation a[href^=\"/docs\"]')].map((link) => link.getAttribute('href'));
                const missing = operations.filter(({ operationId }) => !links.includes(`/docs/operations/${operationId}`));
                const wrong = missing.map(({ operationId }) => `${operationId} has no link`);
                for (const href of links) {
                    document.querySelector(`#navigation a[href=\"${href}\"]`).click();
                    const title = document.querySelector('main h1').textContent;
                    if (title === 'This page is not here') wrong.push(`${href} is not there`);
                    if (document.querySelector('#navigation [aria-current=page]').getAttribute('href') !== href) wrong.push(`${href} is not marked`);
                    const operation = operations.find(({ operationId }) => href === `/docs/operations/${operationId}`);
                    if (!operation) continue;
                    const text = document.querySelector('main').textContent;
                    if (title !== operation.summary) wrong.push(`${href} is called ${title}`);
                    for (const part of ['curl', 'Errors', 'Answer', 'Try it']) if (!text.includes(part)) wrong.push(`${href} has no ${part}`);
                    const scope = operation['x-required-scope'];
                    if (scope && scope !== 'any' && !text.includes(scope)) wrong.push(`${href} does not name its scope`);
                    if (/undefined|\\[object|NaN/.test(text)) wrong.push(`${href} shows what is not there`);
                }
                return [links.length, wrong];
            })()",
        )
        .await;
    assert_eq!(wrong[1], json!([]), "{wrong}");
    assert!(wrong[0].as_u64().unwrap() > 150, "{wrong}");
}

#[tokio::test]
async fn a_link_that_was_sent_shows_its_place_and_back_and_forward_work() {
    let Some(mut reader) =
        Reader::start("a_link_that_was_sent_shows_its_place_and_back_and_forward_work").await
    else {
        return;
    };
    reader.open("/docs/operations/createInvoice#body-rows.unit_price").await;
    assert_eq!(reader.heading().await, "Create an invoice");
    let top = reader
        .tab
        .evaluate("document.getElementById('body-rows.unit_price').getBoundingClientRect().top")
        .await;
    assert!((0.0..900.0).contains(&top.as_f64().unwrap()), "{top}");
    reader
        .tab
        .evaluate("document.querySelector('#navigation a[href=\"/docs/operations/listDeals\"]').click()")
        .await;
    assert_eq!(reader.heading().await, "List deals");
    let title = reader.tab.evaluate("document.title").await;
    assert_eq!(title, "List deals: Business Administration API");
    reader.tab.evaluate("history.back()").await;
    reader.until("document.querySelector('h1').textContent === 'Create an invoice'").await;
    assert_eq!(reader.path().await, "/docs/operations/createInvoice#body-rows.unit_price");
    reader.tab.evaluate("history.forward()").await;
    reader.until("document.querySelector('h1').textContent === 'List deals'").await;
    // A link of the page that was here before, from somebody's notes.
    reader.open("/docs#/Clients/listClients").await;
    assert_eq!(
        (reader.heading().await.as_str(), reader.path().await.as_str()),
        ("List clients", "/docs/operations/listClients")
    );
    reader.open("/docs/operations/noSuchOperation").await;
    assert_eq!(reader.heading().await, "This page is not here");
}

#[tokio::test]
async fn the_code_follows_what_is_typed_and_never_shows_the_key() {
    let Some(mut reader) = Reader::start("the_code_follows_what_is_typed_and_never_shows_the_key").await
    else {
        return;
    };
    reader.open("/docs/operations/getClient").await;
    reader.tab.evaluate("document.querySelector('.try').open = true").await;
    reader
        .tab
        .evaluate(
            "(() => { const put = (input, value) => { input.value = value; input.dispatchEvent(new Event('input', { bubbles: true })); };
              put(document.querySelector('.key'), 'ba_secret');
              put(document.querySelector('.inputs input'), 'a/b\\'c'); })()",
        )
        .await;
    for (language, expected) in [
        ("curl", "curl 'HOST/v1/clients/a%2Fb'\\''c' \\\n  -H \"Authorization: Bearer $API_KEY\""),
        ("JavaScript", "const response = await fetch(\"HOST/v1/clients/a%2Fb'c\", {\n  method: \"GET\","),
        ("Python", "    \"HOST/v1/clients/a%2Fb'c\",\n    method=\"GET\","),
    ] {
        let press = format!(
            "[...document.querySelectorAll('.languages button')].find(b => b.textContent === '{language}').click()"
        );
        reader.tab.evaluate(&press).await;
        let shown = reader.tab.evaluate("document.querySelector('.card pre').textContent").await;
        let shown = shown.as_str().unwrap();
        assert!(shown.contains(&expected.replace("HOST", &reader.host)), "{shown}");
        assert!(!shown.contains("ba_secret"), "{shown}");
    }
    let kept = reader
        .tab
        .evaluate("[localStorage.getItem('key'), sessionStorage.getItem('key'), document.cookie]")
        .await;
    assert_eq!(kept, json!([Value::Null, "ba_secret", ""]), "the key is kept in this tab only");
}

#[tokio::test]
async fn the_look_follows_the_system_until_one_is_chosen() {
    let Some(mut reader) = Reader::start("the_look_follows_the_system_until_one_is_chosen").await else {
        return;
    };
    let ground = "getComputedStyle(document.body).backgroundColor";
    reader.screen(1200, "dark").await;
    reader.open("/docs").await;
    let dark = reader.tab.evaluate(ground).await;
    reader.screen(1200, "light").await;
    let light = reader.tab.evaluate(ground).await;
    assert_ne!(dark, light);
    for expected in [&light, &dark, &light] {
        // System, light, dark, and the system again.
        reader.tab.evaluate("document.getElementById('theme').click()").await;
        assert_eq!(&reader.tab.evaluate(ground).await, expected);
    }
    reader
        .tab
        .evaluate("document.getElementById('theme').click(); document.getElementById('theme').click()")
        .await;
    reader.open("/docs/guides/errors").await;
    assert_eq!(reader.tab.evaluate(ground).await, dark, "the choice is kept");
}
