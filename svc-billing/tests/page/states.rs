//! What each document's page says about the state of the document.

use chrono::TimeDelta;
use render::printed::{Category, Kind, Language, Logo, LogoFormat};
use rust_decimal::Decimal;
use serde_json::json;
use svc_billing::page::{Pay, State, page};

use crate::samples::{credit, day, invoice, row};
use crate::world::{Document, World, says};

#[tokio::test]
async fn an_invoice_tells_what_is_open_and_since_when() {
    let world = World::start().await;
    let invoice = world.create("invoices", json!({})).await;
    let page = world.page(&invoice).await;
    says(&page, &["Factuur INV-2026-00001", "Openstaand", "€\u{a0}1.210,00", "uiterlijk 29 november 2026"]);
    says(&page, &["Klant &amp; Zonen", "Btw 21% over €\u{a0}1.000,00", "€\u{a0}210,00"]);
    world.clock.advance(TimeDelta::days(15));
    says(&world.page(&invoice).await, &["badge bad\">Vervallen"]);
    let pay = format!("{}/payments", invoice.api);
    world.api.post(&pay, json!({"amount": "210.00"})).await.expect(201);
    let page = world.page(&invoice).await;
    says(&page, &["Nog te betalen", "€\u{a0}1.000,00", "Wij ontvingen al €\u{a0}210,00."]);
    world.api.post(&pay, json!({"date": "2026-11-30"})).await.expect(201);
    let page = world.page(&invoice).await;
    says(&page, &["badge good\">Betaald", "Betaald op 30 november 2026."]);
    assert!(!page.contains("Nog te betalen"));
}

#[tokio::test]
async fn a_credited_invoice_asks_for_nothing_and_its_credit_names_it() {
    let world = World::start().await;
    let invoice = world.create("invoices", json!({})).await;
    let credit = world.api.post(&format!("{}/credit", invoice.api), json!({})).await.expect(201);
    says(&world.page(&invoice).await, &["Gecrediteerd", "U hoeft niets te betalen."]);
    let credit = Document::of("invoices", &credit.at("/data"));
    let page = world.page(&credit).await;
    says(&page, &["Creditfactuur INV-2026-00002", "Verrekend met factuur INV-2026-00001."]);
}

#[tokio::test]
async fn what_was_paid_and_credited_is_to_come_back() {
    let world = World::start().await;
    let invoice = world.create("invoices", json!({})).await;
    world.api.post(&format!("{}/payments", invoice.api), json!({})).await.expect(201);
    let credit = world.api.post(&format!("{}/credit", invoice.api), json!({})).await.expect(201);
    let credit = Document::of("invoices", &credit.at("/data"));
    says(&world.page(&credit).await, &["U krijgt €\u{a0}1.210,00 van ons terug."]);
    let refund = json!({"amount": "-1210.00"});
    world.api.post(&format!("{}/payments", credit.api), refund).await.expect(201);
    says(&world.page(&credit).await, &["Aan u terugbetaald op 15 november 2026."]);
}

#[tokio::test]
async fn drafts_and_work_orders_have_pages_and_pdfs_too() {
    let world = World::start().await;
    let draft = json!({"generation_mode": "draft", "client_id": null, "rows": []});
    for (list, more, said) in [
        ("invoices", draft.clone(), "badge draft\">Concept"),
        ("quotes", draft.clone(), "badge draft\">Concept"),
        ("workorders", draft, "badge draft\">Concept"),
        ("workorders", json!({}), "Werkbon WO-2026-00001"),
    ] {
        let document = world.create(list, more).await;
        says(&world.page(&document).await, &[said, &document.number, "PDF downloaden"]);
        let pdf = world.open(&format!("{}/pdf", document.page)).await.expect(200);
        assert!(pdf.body.starts_with(b"%PDF-"));
        let disposition = format!("inline; filename=\"{}.pdf\"", document.number);
        for (name, value) in [
            ("content-type", "application/pdf"),
            ("content-disposition", disposition.as_str()),
            ("cache-control", "private, no-cache"),
        ] {
            assert_eq!(pdf.header(name), Some(value), "{name}");
        }
    }
}

#[test]
fn an_open_invoice_shows_how_to_pay_what_is_left() {
    let printed = invoice(vec![row("10", "100", "21", Category::S)]);
    let open = State::ToPay {
        open: Decimal::from(1000),
        paid: Decimal::from(210),
        credited: Decimal::ZERO,
        late: false,
        pay: Pay::default(),
    };
    let shown = page(&printed, &open, "/documents/x").unwrap().html;
    says(
        &shown,
        &["NL91 ABNA 0417 1643 00", "ABNANL2A", "Voorbeeld B.V.", "<dd dir=\"auto\">€\u{a0}1.000,00"],
    );
    says(&shown, &["x&#x2f;pdf\">PDF downloaden", "href=\"mailto:facturen@voorbeeld.nl\""]);
    let paid = page(&printed, &State::Paid { on: Some(day(2026, 11, 20)) }, "/documents/x").unwrap().html;
    assert!(!paid.contains("NL91 ABNA"), "nobody pays twice");
}

#[test]
fn a_page_speaks_the_language_of_its_document() {
    let mut printed = invoice(vec![row("1", "1234.5", "0", Category::AE)]);
    printed.language = Language::En;
    printed.kind = Kind::Quote;
    let shown = page(&printed, &State::Offered, "/documents/x").unwrap().html;
    says(&shown, &["<html lang=\"en\">", "Accept this quote", "Valid until 28 November 2026.", "€1,234.50"]);
    says(&shown, &["Reverse charge: VAT is to be accounted for by the customer."]);
}

#[test]
fn a_logo_is_inside_the_page_and_takes_the_place_of_the_name() {
    let mut printed = credit(vec![row("1", "10", "21", Category::S)]);
    let svg = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>".to_vec();
    printed.look.logo = Some(Logo { format: LogoFormat::Svg, bytes: svg });
    let shown = page(&printed, &State::Settled, "/documents/x").unwrap().html;
    says(&shown, &["src=\"data:image/svg+xml;base64,", "alt=\"Voorbeeld B.V.\""]);
    assert!(!shown.contains("onload"));
    printed.look.logo = Some(Logo { format: LogoFormat::Png, bytes: vec![0; 3 << 20] });
    let shown = page(&printed, &State::Settled, "/documents/x").unwrap().html;
    assert!(!shown.contains("data:image"), "too large to wait for");
}

#[tokio::test]
async fn an_invoice_of_less_than_nothing_tells_what_the_reader_gets() {
    let world = World::start().await;
    let rows = json!([{"name": "Terug", "quantity": -2, "unit_price": 100, "vat_rate": "21"}]);
    let page = world.page(&world.create("invoices", json!({"rows": rows})).await).await;
    says(&page, &["U krijgt €\u{a0}242,00 van ons terug.", "U ontvangt</span> <strong>€\u{a0}242,00"]);
    assert!(!page.contains("<form") && !page.contains("Te betalen"), "nothing is asked");
}

#[tokio::test]
async fn a_quote_that_was_opened_again_by_hand_is_offered_again() {
    let world = World::start().await;
    let quote = world.final_quote().await;
    world.accept(&quote).await.expect(303);
    says(&world.page(&quote).await, &["U hebt deze offerte geaccepteerd"]);
    world.api.patch(&quote.api, json!({"payment_status": "invoiced"})).await.expect(200);
    says(&world.page(&quote).await, &["U hebt deze offerte geaccepteerd"]);
    world.api.patch(&quote.api, json!({"payment_status": "open"})).await.expect(200);
    says(&world.page(&quote).await, &["Wacht op uw akkoord"]);
    world.accept(&quote).await.expect(303);
    assert_eq!(world.count_events(&quote, "quote.accepted").await, 2);
}
