use serde_json::json;

use crate::support::{World, conflict, id, path};

#[tokio::test]
async fn the_e_invoice_of_a_final_invoice_is_xml_without_an_envelope() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Bakery & Sons").await;
    let invoice = user.invoice(&client, &[10]).await;
    let ubl = user.api.get(&format!("{}/ubl", path("invoices", &invoice))).await.expect(200);
    assert_eq!(ubl.header("content-type"), Some("application/xml"));
    assert_eq!(ubl.header("content-disposition"), Some("attachment; filename=\"INV-2026-00001.xml\""));
    let text = String::from_utf8(ubl.body.to_vec()).unwrap();
    assert!(text.starts_with("<?xml") && text.contains("<Invoice"), "{text}");
    assert!(text.contains("INV-2026-00001") && text.contains("Bakery &amp; Sons"), "{text}");
    let credit = user.credit(&invoice, json!({})).await;
    let ubl = user.api.get(&format!("{}/ubl", path("invoices", &credit))).await.expect(200);
    let text = String::from_utf8(ubl.body.to_vec()).unwrap();
    assert!(text.contains("<CreditNote") && text.contains("INV-2026-00001"), "{text}");
}

#[tokio::test]
async fn a_draft_has_no_e_invoice() {
    let world = World::new().await;
    let user = world.user().await;
    let draft = user.create("invoices", json!({"title": "T"})).await;
    assert_eq!(conflict(user.api.get(&format!("{}/ubl", path("invoices", &draft))).await), "is_draft");
    let quote = user.create("quotes", json!({"title": "T"})).await;
    user.api.get(&format!("/v1/invoices/{}/ubl", id(&quote))).await.expect(404);
    user.api.get("/v1/invoices/nonsense/ubl").await.expect(404);
}
