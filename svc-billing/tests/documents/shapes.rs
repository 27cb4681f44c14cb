//! The exact shapes of the contract.

use serde_json::{Value, json};

use crate::support::{User, World, id, path};

/// What the three lists have of their own: number, days until due, whether there is an e-invoice, what is open.
const KINDS: [(&str, &str, &str, bool, f64); 3] = [
    ("invoices", "INV-2026-00001", "2026-11-29", true, 121.0),
    ("quotes", "QUO-2026-00001", "2026-12-15", false, 0.0),
    ("workorders", "WO-2026-00001", "2026-11-29", false, 0.0),
];

async fn body(user: &User) -> Value {
    let client = json!({"company_name": "Bakery", "firstname": "Sanne", "lastname": "de Vries"});
    json!({
        "title": "  Bread ", "client_id": user.client_with(client).await, "external_id": "order-1",
        "rows": [{"name": "Sourdough", "title": "Large", "quantity": 25, "unit": "loaf", "unit_price": "4.00",
                  "vat_rate": "21%"}],
    })
}

/// The draft of [`body`] as it is to be shown. What other settings of the account decide is taken from it.
fn shown(document: &Value, body: &Value, due_date: &str, has_einvoice: bool, open: f64) -> Value {
    let web_url = document["web_url"].as_str().unwrap();
    assert!(web_url.contains("/documents/"), "{web_url}");
    json!({
        "id": document["id"], "number": "DRAFT-1", "title": "Bread", "invoice_date": "2026-11-15",
        "due_date": due_date, "created_at": "2026-11-15T11:00:00.123Z", "subtotal": 100.0, "vat_rate": 21,
        "vat_amount": 21.0, "total_excl_vat": 100.0, "total_incl_vat": 121.0, "client_id": body["client_id"],
        "payment_status": "draft", "paid_at": null, "sent_at": null, "project_number": null, "is_credit": false,
        "external_id": "order-1",
        "rows": [{
            "name": "Sourdough", "quantity": 25, "unit": "loaf", "unit_price": 4, "vat_rate": "21",
            "total_excl_vat": 100.0, "total_incl_vat": 121.0, "description": "Large",
        }],
        "client_company_name": "Bakery", "client_firstname": "Sanne", "client_lastname": "de Vries",
        "web_url": web_url, "pdf_url": format!("{web_url}/pdf"),
        "meta": {
            "vat_breakdown": [{
                "rate": 21, "code": document["meta"]["vat_breakdown"][0]["code"], "taxable": 100.0, "vat": 21.0,
            }],
            "paid_amount": 0.0, "open_amount": open, "overpaid_amount": 0.0, "credits": null, "credited_by": [],
            "finalized_at": null, "accepted_at": null, "updated_at": "2026-11-15T11:00:00.123Z",
            "einvoice": if has_einvoice { json!({"ready": false, "missing": ["finalization"]}) } else { Value::Null },
            "history": [], "subscription_id": null, "period": null, "version": 1,
        },
        "generation_mode": "draft",
        "pdf": {"generated": false, "status": "none", "message": null, "url": null},
    })
}

#[tokio::test]
async fn a_draft_of_each_kind_has_every_field_of_its_shape() {
    let world = World::new().await;
    let user = world.user().await;
    let body = body(&user).await;
    for (list, _, due_date, has_einvoice, open) in KINDS {
        let created = user.api.post(&format!("/v1/{list}"), body.clone()).await.expect(201);
        let document = created.at("/data");
        let expected = shown(&document, &body, due_date, has_einvoice, open);
        assert_eq!(created.json(), json!({"data": expected, "meta": {}}), "{list}");
        let here = path(list, &document);
        assert_eq!(created.header("location"), Some(here.as_str()));
        let fetched = user.api.get(&here).await.expect(200);
        assert_eq!(fetched.body, created.body, "and is shown again byte for byte");
    }
}

#[tokio::test]
async fn a_final_document_of_each_kind_has_its_number_and_a_pdf_that_exists() {
    let world = World::new().await;
    let user = world.user().await;
    let mut body = body(&user).await;
    for (index, (list, number, due_date, has_einvoice, open)) in KINDS.into_iter().enumerate() {
        // Both spellings of the same wish.
        body["generation_mode"] = if index == 1 { Value::Null } else { json!("final") };
        body["generate"] = json!(index == 1);
        let created = user.api.post(&format!("/v1/{list}"), body.clone()).await.expect(201);
        let document = created.at("/data");
        let mut expected = shown(&document, &body, due_date, has_einvoice, open);
        expected["number"] = json!(number);
        expected["payment_status"] = json!("open");
        expected["generation_mode"] = json!("final");
        expected["meta"]["finalized_at"] = expected["created_at"].clone();
        // The PDF is made before the commit, and so it is part of the first version.
        expected["meta"]["version"] = json!(1);
        expected["pdf"] =
            json!({"generated": true, "status": "ready", "message": null, "url": document["pdf_url"]});
        if has_einvoice {
            // What is missing is up to the account's settings.
            let missing = &document["meta"]["einvoice"]["missing"];
            assert!(!missing.as_array().unwrap().contains(&json!("number")), "{missing}");
            let ready = missing.as_array().unwrap().is_empty();
            expected["meta"]["einvoice"] = json!({"ready": ready, "missing": missing});
        }
        assert_eq!(created.json(), json!({"data": expected, "meta": {}}), "{list}");
        let fetched = user.api.get(&path(list, &document)).await.expect(200);
        assert_eq!(fetched.body, created.body, "and is shown again byte for byte");
        assert_eq!(pdfs(world.files()).len(), index + 1, "the file is really there");
        let pdf = user.api.get(&format!("{}/pdf", path(list, &document))).await.expect(200);
        let expected = json!({"id": document["id"], "pdf_url": document["pdf_url"]});
        assert_eq!(pdf.json(), json!({"data": expected, "meta": {}}));
    }
}

/// The files below a folder, each of which must be a PDF.
fn pdfs(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap().path();
        if entry.is_dir() {
            found.extend(pdfs(&entry));
        } else {
            assert!(std::fs::read(&entry).unwrap().starts_with(b"%PDF"), "{}", entry.display());
            found.push(entry);
        }
    }
    found
}

#[tokio::test]
async fn a_list_shows_the_fields_of_an_item_and_no_others() {
    let world = World::new().await;
    let user = world.user().await;
    let body = body(&user).await;
    for (list, ..) in KINDS {
        let document = user.create(list, body.clone()).await;
        let page = user.api.get(&format!("/v1/{list}")).await.expect(200).json();
        let names = [
            "id",
            "number",
            "title",
            "invoice_date",
            "due_date",
            "created_at",
            "subtotal",
            "vat_rate",
            "vat_amount",
            "total_excl_vat",
            "total_incl_vat",
            "client_id",
            "payment_status",
            "paid_at",
            "sent_at",
            "project_number",
            "is_credit",
            "external_id",
        ];
        let mut item: serde_json::Map<_, _> =
            names.iter().map(|name| ((*name).to_owned(), document[*name].clone())).collect();
        item.insert("meta".to_owned(), json!({"version": 1, "updated_at": document["created_at"]}));
        let meta = json!({"page": 1, "per_page": 25, "total": 1, "pages": 1});
        assert_eq!(page, json!({"data": [item], "meta": meta}));
    }
}

#[tokio::test]
async fn a_document_that_says_little_has_nulls_and_empty_texts() {
    let world = World::new().await;
    let user = world.user().await;
    let bare = json!({"title": "T", "client_id": null, "rows": null, "external_id": null, "number": null});
    let document = user.create("quotes", bare).await;
    for (name, value) in [
        ("client_id", json!("")),
        ("client_company_name", json!("")),
        ("external_id", Value::Null),
        ("rows", json!([])),
        ("vat_rate", json!(0)),
        ("total_incl_vat", json!(0.0)),
    ] {
        assert_eq!(document[name], value, "{name}");
    }
    assert_eq!(id(&document).len(), 36);
}

#[tokio::test]
async fn decimals_go_in_as_numbers_or_texts_and_come_out_exactly() {
    let world = World::new().await;
    let user = world.user().await;
    let headers = [("content-type", "application/json")];
    let body = r#"{"title": "T", "rows": [
        {"name": "a", "quantity": 0.1, "unit_price": "0.3000", "vat_rate": 9},
        {"name": "b", "quantity": "3", "unit_price": 1234567.8901, "vat_rate": "8.125"},
        {"name": "c", "quantity": -0.0001, "unit_price": 1, "vat_rate": "0"}]}"#;
    let created = user.api.send(http::Method::POST, "/v1/invoices", &headers, body).await.expect(201);
    let fetched = user.api.get(&path("invoices", &created.at("/data"))).await.expect(200);
    for answer in [created, fetched] {
        let text = String::from_utf8(answer.body.to_vec()).unwrap();
        for row in [
            r#""quantity":0.1,"unit":"","unit_price":0.3,"vat_rate":"9","total_excl_vat":0.03,"total_incl_vat":0.03"#,
            r#""quantity":3,"unit":"","unit_price":1234567.8901,"vat_rate":"8.125","total_excl_vat":3703703.67,"#,
            r#""quantity":-0.0001,"unit":"","unit_price":1,"vat_rate":"0","total_excl_vat":0.00,"total_incl_vat":0.00"#,
            r#""total_excl_vat":3703703.70,"#,
        ] {
            assert!(text.contains(row), "{row} in {text}");
        }
    }
}

#[tokio::test]
async fn a_row_of_an_unknown_vat_category_fails_instead_of_being_shown_as_another() {
    let world = World::new().await;
    let user = world.user().await;
    let document =
        user.create("invoices", json!({"title": "T", "rows": [{"name": "a", "unit_price": 1}]})).await;
    let sql =
        "update billing.document_row set category = 'X' where account_id = $1 and document_id = $2::uuid";
    let query = sqlx::query(sql).bind(user.account.id).bind(id(&document));
    query.execute(&mut world.database.connect().await).await.unwrap();
    user.api.get(&path("invoices", &document)).await.expect(500);
}
