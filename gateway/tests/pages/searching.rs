//! The search box.

use serde_json::{Value, json};

use crate::reader::Reader;

/// What is found, best first: kind, title and what stands below it.
async fn found(reader: &mut Reader, query: &str) -> Vec<Vec<String>> {
    reader.press("Escape").await;
    reader.tab.evaluate("document.activeElement.blur()").await;
    reader.press("/").await;
    reader.write(query).await;
    let options = reader
        .tab
        .evaluate("[...document.querySelectorAll('#found li:not(.none)')].map(li => [...li.querySelectorAll('span')].map(span => span.textContent))")
        .await;
    serde_json::from_value(options).unwrap()
}

#[tokio::test]
async fn the_search_finds_what_one_types_best_first() {
    let Some(mut reader) = Reader::start("the_search_finds_what_one_types_best_first").await else { return };
    reader.open("/docs").await;
    for (query, kind, title, about) in [
        ("create invoice", "Operation", "Create an invoice", "POST /v1/invoices"),
        ("INVOICE create", "Operation", "Create an invoice", "POST /v1/invoices"),
        ("post /v1/clients", "Operation", "Create a client", "POST /v1/clients"),
        ("/v1/invoices/{id}/send", "Operation", "Send an invoice", "POST /v1/invoices/{id}/send"),
        ("link a person", "Operation", "Link a person to a company", "POST /v1/clients/{id}/links"),
        ("listTickets", "Operation", "List tickets", "GET /v1/tickets"),
        ("client_external_id", "Field", "client_external_id", "body of: Create an invoice"),
        ("rows unit_price", "Field", "rows.unit_price", "body of: Create an invoice"),
        ("per_page", "Parameter", "per_page", "query of: "),
        ("If-Match", "Parameter", "If-Match", "header of: "),
        ("invoice.paid", "Event", "invoice.paid", ""),
        ("external_id taken", "Error", "external_id_taken", "409 "),
        ("going live", "Guide", "Going live", "Guide"),
        ("check signature", "Section", "Check the signature", "Webhooks"),
        ("scopes", "Section", "Scopes", "Overview"),
        ("mandate", "Operation", "Ask a client for a mandate", ""),
    ] {
        let hits = found(&mut reader, query).await;
        let first = hits.first().unwrap_or_else(|| panic!("{query} finds nothing"));
        assert!(first[0] == kind && first[1] == title && first[2].starts_with(about), "{query}: {first:?}");
    }
    let hits = found(&mut reader, "invoices wombat").await;
    assert!(hits.is_empty(), "every word has to be there: {hits:?}");
    assert_eq!(reader.tab.evaluate("document.getElementById('said').textContent").await, "0 results");
    let hits = found(&mut reader, "   ").await;
    assert!(hits.is_empty(), "{hits:?}");
    let hits = found(&mut reader, "<img src=x onerror=alert(1)>").await;
    assert!(
        hits.is_empty() && reader.tab.evaluate("document.querySelector('#found img')").await == Value::Null
    );
}

#[tokio::test]
async fn the_search_is_used_with_the_keyboard_alone() {
    let Some(mut reader) = Reader::start("the_search_is_used_with_the_keyboard_alone").await else { return };
    reader.open("/docs").await;
    reader.press("/").await;
    assert_eq!(reader.tab.evaluate("document.activeElement.id").await, "search");
    reader.write("deal").await;
    let state = "[document.getElementById('search').getAttribute('aria-expanded'), \
                  document.getElementById('search').getAttribute('aria-activedescendant'), \
                  document.querySelectorAll('#found [aria-selected=true]').length]";
    assert_eq!(reader.tab.evaluate(state).await, json!(["true", "found-0", 1]));
    reader.press("ArrowDown").await;
    reader.press("ArrowDown").await;
    reader.press("ArrowUp").await;
    assert_eq!(reader.tab.evaluate(state).await, json!(["true", "found-1", 1]));
    reader.press("ArrowUp").await;
    reader.press("ArrowUp").await;
    let last = reader.tab.evaluate("document.querySelectorAll('#found li').length - 1").await;
    assert_eq!(reader.tab.evaluate(state).await, json!(["true", format!("found-{last}"), 1]));
    let title = "document.querySelector('#found [aria-selected=true] .title').textContent";
    reader.press("ArrowDown").await;
    let chosen = reader.tab.evaluate(title).await;
    reader.press("Enter").await;
    assert_eq!(reader.tab.evaluate("document.querySelector('h1').textContent").await, chosen);
    assert_eq!(
        reader.tab.evaluate("document.activeElement.localName").await,
        "h1",
        "the reader goes on there"
    );
    reader.press("/").await;
    reader.write("deal").await;
    reader.press("Escape").await;
    let closed = "[document.getElementById('found').hidden, document.getElementById('search').value]";
    assert_eq!(reader.tab.evaluate(closed).await, json!([true, ""]));
}

#[tokio::test]
async fn a_found_field_is_shown_where_it_is() {
    let Some(mut reader) = Reader::start("a_found_field_is_shown_where_it_is").await else { return };
    reader.open("/docs").await;
    let hits = found(&mut reader, "rows.unit_price").await;
    assert_eq!(hits[0][1], "rows.unit_price");
    reader.press("Enter").await;
    assert_eq!(reader.path().await, "/docs/operations/createInvoice#body-rows.unit_price");
    let top = reader.tab.evaluate("document.querySelector('.target').getBoundingClientRect().top").await;
    assert!((0.0..900.0).contains(&top.as_f64().unwrap()), "it is in sight: {top}");
}
