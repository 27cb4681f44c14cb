use chassis_testing::expected_faults;
use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::support::{World, conflict, id, path, priced, settled, settlement};

#[tokio::test]
async fn a_draft_that_lacks_its_client_or_its_rows_is_incomplete() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    for (list, body) in [
        ("invoices", json!({"title": "T", "client_id": client})),
        ("invoices", json!({"title": "T", "rows": priced(&[5])})),
        ("quotes", json!({"title": "T", "rows": priced(&[5])})),
        ("quotes", json!({"title": "T", "client_id": client})),
        ("workorders", json!({"title": "T", "client_id": client})),
        ("workorders", json!({"title": "T"})),
    ] {
        let draft = user.create(list, body).await;
        let refused = user.act(list, &draft, "finalize", json!({})).await;
        assert_eq!(conflict(refused), "incomplete");
        assert_eq!(user.get(list, &draft).await, draft);
    }
    user.api.post("/v1/invoices/nonsense/finalize", json!({})).await.expect(404);
}

#[tokio::test]
async fn a_final_document_keeps_its_client_as_it_was_and_is_finalised_once() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Old name").await;
    let draft = user.create("quotes", json!({"title": "T", "client_id": client, "rows": priced(&[5])})).await;
    let rename = async |name: &str| {
        user.api.patch(&format!("/v1/clients/{client}"), json!({"company_name": name})).await.expect(200);
    };
    rename("New name").await;
    world.clock.advance(TimeDelta::seconds(1));
    let made = user.act("quotes", &draft, "finalize", json!({})).await.expect(200).at("/data");
    assert_eq!(
        (&made["client_company_name"], &made["number"]),
        (&json!("New name"), &json!("QUO-2026-00001"))
    );
    assert_eq!((&made["payment_status"], &made["generation_mode"]), (&json!("open"), &json!("final")));
    assert_eq!(made["meta"]["finalized_at"], "2026-11-15T11:00:01.123Z");
    assert_eq!(made["pdf"]["status"], "ready");
    assert_eq!(made["meta"]["history"][0]["event"], "finalized");
    assert_eq!(made["web_url"], draft["web_url"], "links stay");
    rename("Newest name").await;
    world.clock.advance(TimeDelta::seconds(1));
    let again = user.act("quotes", &draft, "finalize", json!({})).await.expect(200).at("/data");
    assert_eq!(again, made);
    assert_eq!(user.api.get("/v1/quotes?search=new%20name").await.at("/meta/total"), 1);
    assert_eq!(user.api.get("/v1/quotes?search=quo-2026").await.at("/meta/total"), 1);
}

#[tokio::test]
async fn finalising_opens_a_draft_and_leaves_other_text() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let draft = user.draft(&client, &[10]).await;
    user.patch("invoices", &draft, json!({"payment_status": "disputed"})).await;
    let made = user.finalize("invoices", &draft).await;
    assert_eq!(settlement(&made), settled("disputed", 10.0, 0.0));
    // A deposit counts from then on.
    let draft = user.draft(&client, &[10]).await;
    user.pay(&draft, json!({"amount": 4, "date": "2026-11-02"})).await;
    user.pay(&draft, json!({"date": "2026-11-01"})).await;
    assert_eq!(settlement(&user.get("invoices", &draft).await), settled("draft", 0.0, 0.0));
    let made = user.finalize("invoices", &draft).await;
    assert_eq!(settlement(&made), settled("paid", 0.0, 0.0));
    assert_eq!(made["paid_at"], "2026-11-02T00:00:00.000Z");
}

#[tokio::test]
async fn an_invoice_of_nothing_is_paid_on_the_accounts_day_however_it_became_final() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    // 23:30 in UTC is half past midnight in Amsterdam.
    world.clock.advance(TimeDelta::minutes(750));
    let at_once = user.invoice(&client, &[10, -10]).await;
    let draft = user.draft(&client, &[0]).await;
    assert_eq!((&draft["payment_status"], &draft["paid_at"]), (&json!("draft"), &Value::Null));
    for invoice in [at_once, user.finalize("invoices", &draft).await] {
        assert_eq!(settlement(&invoice), settled("paid", 0.0, 0.0));
        assert_eq!(invoice["paid_at"], "2026-11-16T00:00:00.000Z");
    }
}

#[tokio::test]
async fn a_draft_credit_counts_when_it_becomes_final() {
    let world = World::new().await;
    let user = world.user().await;
    let draft = user.draft(&user.client("C").await, &[10]).await;
    let credit = user.credit(&draft, json!({})).await;
    assert_eq!((&credit["generation_mode"], &credit["payment_status"]), (&json!("draft"), &json!("draft")));
    let too_early = user.act("invoices", &credit, "finalize", json!({})).await;
    assert_eq!(conflict(too_early), "incomplete");
    user.finalize("invoices", &draft).await;
    user.pay(&draft, json!({})).await;
    assert_eq!(settlement(&user.get("invoices", &draft).await), settled("paid", 0.0, 0.0));
    let credit = user.finalize("invoices", &credit).await;
    assert_eq!(settlement(&credit), settled("open", -10.0, 0.0));
    let invoice = user.get("invoices", &draft).await;
    assert_eq!(settlement(&invoice), settled("credited", 0.0, 0.0));
    assert_eq!(invoice["meta"]["credited_by"], json!([id(&credit)]), "{}", path("invoices", &credit));
}

#[tokio::test]
async fn a_draft_is_dated_on_the_day_on_which_it_becomes_final() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    let draft = async |more: Value| {
        let mut body = json!({"title": "T", "client_id": client, "rows": priced(&[5])});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        user.create("invoices", body).await
    };
    let (plain, dated) = (draft(json!({})).await, draft(json!({"invoice_date": "2026-11-10"})).await);
    let due = draft(json!({"due_date": "2027-01-20"})).await;
    let past = draft(json!({"due_date": "2026-12-01"})).await;
    let patched = draft(json!({})).await;
    user.patch("invoices", &patched, json!({"invoice_date": "2026-11-16"})).await;
    assert_eq!((&plain["invoice_date"], &plain["due_date"]), (&json!("2026-11-15"), &json!("2026-11-29")));
    // To 2 January of the next year.
    world.clock.advance(TimeDelta::days(48));
    for (draft, number, invoice_date, due_date) in [
        (&plain, "INV-2027-00001", "2027-01-02", "2027-01-16"),
        (&due, "INV-2027-00002", "2027-01-02", "2027-01-20"),
        (&dated, "INV-2026-00001", "2026-11-10", "2026-11-24"),
        (&patched, "INV-2026-00002", "2026-11-16", "2026-11-29"),
    ] {
        let made = user.finalize("invoices", draft).await;
        assert_eq!(
            (&made["number"], &made["invoice_date"], &made["due_date"]),
            (&json!(number), &json!(invoice_date), &json!(due_date))
        );
        assert_eq!(user.get("invoices", draft).await, made);
    }
    let refused = user.act("invoices", &past, "finalize", json!({})).await;
    assert_eq!(conflict(refused), "incomplete", "it was to be paid before today");
    user.patch("invoices", &past, json!({"due_date": "2027-02-01"})).await;
    assert_eq!(user.finalize("invoices", &past).await["invoice_date"], "2027-01-02");
}

#[tokio::test]
async fn the_date_of_a_final_document_stays_in_the_year_of_its_number() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("C").await;
    for list in ["invoices", "quotes", "workorders"] {
        let body =
            json!({"title": "T", "client_id": client, "rows": priced(&[5]), "generation_mode": "final"});
        let made = user.create(list, body).await;
        for dates in [
            json!({"invoice_date": "2025-12-31"}),
            json!({"invoice_date": "2027-01-01", "due_date": "2027-02-01"}),
        ] {
            let refused = user.api.patch(&path(list, &made), dates).await.expect(422);
            assert_eq!(refused.faults(), expected_faults(&[("/invoice_date", "out_of_range")]));
        }
        user.patch(list, &made, json!({"invoice_date": "2026-01-01"})).await;
        user.patch(list, &made, json!({"invoice_date": "2026-12-31", "due_date": "2027-01-05"})).await;
    }
}

#[tokio::test]
async fn vat_that_the_buyer_is_to_pay_needs_the_buyers_vat_number() {
    let world = World::new().await;
    let user = world.user().await;
    let nameless = user.client("C").await;
    let known =
        user.client_with(json!({"company_name": "D", "country": "BE", "vat_number": "BE0403170701"})).await;
    for code in ["REVERSE", "ICP"] {
        let body = |client: &str, mode: &str| {
            json!({"title": "T", "client_id": client, "generation_mode": mode,
                   "rows": [{"name": "Row", "unit_price": 5, "vat_code": code}]})
        };
        let refused = user.api.post("/v1/invoices", body(&nameless, "final")).await.expect(422);
        assert_eq!(refused.faults(), expected_faults(&[("/client_id", "conflicting")]));
        let draft = user.create("invoices", body(&nameless, "draft")).await;
        assert_eq!(conflict(user.act("invoices", &draft, "finalize", json!({})).await), "incomplete");
        user.create("invoices", body(&known, "final")).await;
        user.create("quotes", body(&nameless, "final")).await;
    }
}

#[tokio::test]
async fn a_deposit_is_deducted_for_ever_in_the_e_invoice_and_from_what_is_asked() {
    let world = World::new().await;
    let user = world.user().await;
    let draft = user.draft(&user.client("C").await, &[100]).await;
    user.pay(&draft, json!({"amount": 30})).await;
    let made = user.finalize("invoices", &draft).await;
    assert_eq!(settlement(&made), settled("partially_paid", 70.0, 0.0));
    let ubl = async || {
        let ubl = user.api.get(&format!("{}/ubl", path("invoices", &made))).await.expect(200);
        String::from_utf8(ubl.body.to_vec()).unwrap()
    };
    let xml = ubl().await;
    let amounts =
        [">30.00</cbc:PrepaidAmount>", ">70.00</cbc:PayableAmount>", ">100.00</cbc:TaxInclusiveAmount>"];
    for amount in amounts {
        assert!(xml.contains(amount), "{amount} is not in {xml}");
    }
    let page = made["web_url"].as_str().unwrap();
    let page = &page[page.find("/documents/").unwrap()..];
    let shown = String::from_utf8(user.api.get(page).await.expect(200).body.to_vec()).unwrap();
    assert!(shown.contains("Nog te betalen") && shown.contains("€\u{a0}70,00"), "{shown}");
    let url = made["pdf_url"].as_str().unwrap();
    let pdf = user.api.get(&url[url.find("/documents/").unwrap()..]).await.expect(200).body;
    let place = world.files().join("billing").join(user.account.id.to_string()).join("documents");
    let kept = std::fs::read_dir(&place).unwrap().next().unwrap().unwrap().path();
    assert!(std::fs::read(kept).unwrap() == pdf, "it was issued for what is left");
    user.pay(&draft, json!({})).await;
    assert_eq!(ubl().await, xml, "what is paid later is not of the e-invoice");
    assert_eq!(settlement(&user.get("invoices", &draft).await), settled("paid", 0.0, 0.0));
}

#[tokio::test]
async fn the_pdf_follows_what_is_paid_and_the_first_one_stays() {
    let world = World::new().await;
    let user = world.user().await;
    let invoice = user.invoice(&user.client("C").await, &[100]).await;
    let url = invoice["pdf_url"].as_str().unwrap();
    let url = url[url.find("/documents/").unwrap()..].to_owned();
    let pdf = async || user.api.get(&url).await.expect(200).body;
    let place = world.files().join("billing").join(user.account.id.to_string()).join("documents");
    let kept = || std::fs::read_dir(&place).unwrap().count();
    let open = pdf().await;
    assert_eq!(kept(), 1);
    let payment = user.pay(&invoice, json!({"amount": 40})).await;
    let partly = pdf().await;
    assert!(partly != open && partly == pdf().await);
    user.pay(&invoice, json!({})).await;
    let paid = pdf().await;
    assert!(paid != open && paid != partly);
    assert_eq!(kept(), 1, "only what was issued is a file");
    let here =
        |payment: &Value| format!("{}/payments/{}", path("invoices", &invoice), id(&payment["payment"]));
    user.delete(&here(&payment)).await.expect(204);
    pdf().await;
    let rest = user.api.get(&format!("{}/payments", path("invoices", &invoice))).await.at("/data/0");
    user.delete(&format!("{}/payments/{}", path("invoices", &invoice), id(&rest))).await.expect(204);
    assert!(pdf().await == open, "as it was issued");
}
