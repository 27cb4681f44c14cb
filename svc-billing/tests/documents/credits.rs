use chassis_testing::expected_faults;
use serde_json::{Value, json};

use crate::support::{World, conflict, id, path, settled, settlement};

fn rows(indexes: &[i64]) -> Value {
    json!({"credit_all": false, "row_indexes": indexes})
}

#[tokio::test]
async fn a_credit_is_the_invoice_with_the_opposite_sign() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Bakery").await;
    let body = json!({"title": "Bread", "client_id": client, "external_id": "order-1", "generate": true,
        "invoice_date": "2026-11-01", "due_date": "2026-11-21", "rows": [
        {"name": "Rye", "title": "Whole", "quantity": 2.5, "unit": "loaf", "unit_price": 4, "vat_rate": "9"},
        {"name": "Delivery", "unit_price": 10, "vat_rate": "21"},
    ]});
    let invoice = user.create("invoices", body).await;
    let answer = user.act("invoices", &invoice, "credit", json!({})).await.expect(201);
    let credit = answer.at("/data");
    for (name, value) in [
        ("is_credit", json!(true)),
        ("title", json!("Bread")),
        ("client_id", json!(client)),
        ("client_company_name", json!("Bakery")),
        ("external_id", Value::Null),
        ("number", json!("INV-2026-00002")),
        ("generation_mode", json!("final")),
        ("invoice_date", json!("2026-11-15")),
        ("due_date", json!("2026-12-05")),
        ("total_excl_vat", json!(-20.0)),
        ("vat_amount", json!(-3.0)),
        ("total_incl_vat", json!(-23.0)),
        ("vat_rate", json!(15)),
        ("payment_status", json!("credited")),
        ("paid_at", Value::Null),
    ] {
        assert_eq!(credit[name], value, "{name}");
    }
    assert_eq!(
        credit["rows"][0],
        json!({"name": "Rye", "quantity": -2.5, "unit": "loaf", "unit_price": 4, "vat_rate": "9",
               "total_excl_vat": -10.0, "total_incl_vat": -10.9, "description": "Whole"})
    );
    assert_eq!(credit["meta"]["credits"], invoice["id"]);
    assert_eq!(credit["pdf"]["status"], "ready");
    assert_ne!(credit["web_url"], invoice["web_url"]);
    assert_eq!(user.get("invoices", &credit).await, credit);
    let original = user.get("invoices", &invoice).await;
    assert_eq!(original["meta"]["credited_by"], json!([credit["id"]]));
    assert_eq!(settlement(&original), settled("credited", 0.0, 0.0));
    assert_eq!(original["meta"]["history"][0]["event"], "credited");
    assert_eq!(original["meta"]["history"][0]["data"], json!({"credit_id": credit["id"]}));
    assert_eq!(original["rows"], invoice["rows"]);
    assert_eq!(user.total("invoices").await, 2);
}

#[tokio::test]
async fn a_row_is_credited_once_and_all_means_the_rest() {
    let world = World::new().await;
    let user = world.user().await;
    let draft = user.draft(&user.client("C").await, &[1, 2, 4, 8]).await;
    let first = user.credit(&draft, rows(&[3, 0])).await;
    assert_eq!(first["total_incl_vat"], -9.0);
    assert_eq!(first["number"], "DRAFT-2");
    for again in [rows(&[0]), rows(&[1, 3])] {
        assert_eq!(conflict(user.act("invoices", &draft, "credit", again).await), "already_credited");
    }
    let second = user.credit(&draft, json!({"credit_all": true, "row_indexes": [0]})).await;
    assert_eq!(second["total_incl_vat"], -6.0, "the indexes count only when credit_all is false");
    for again in [json!({}), json!({"credit_all": true}), rows(&[1])] {
        assert_eq!(conflict(user.act("invoices", &draft, "credit", again).await), "already_credited");
    }
    let original = user.get("invoices", &draft).await;
    assert_eq!(original["meta"]["credited_by"], json!([first["id"], second["id"]]));
    for credit in [&first, &second] {
        assert_eq!(conflict(user.act("invoices", credit, "credit", json!({})).await), "is_credit");
    }
}

#[tokio::test]
async fn row_indexes_count_from_0_and_each_fault_is_told() {
    let world = World::new().await;
    let user = world.user().await;
    let draft = user.draft(&user.client("C").await, &[1, 2]).await;
    for (body, expected) in [
        (json!({"credit_all": false}), expected_faults(&[("/row_indexes", "required")])),
        (rows(&[]), expected_faults(&[("/row_indexes", "required")])),
        (
            rows(&[2, 0, -1, 0]),
            expected_faults(&[
                ("/row_indexes/0", "out_of_range"),
                ("/row_indexes/2", "out_of_range"),
                ("/row_indexes/3", "repeated"),
            ]),
        ),
        (json!({"credit_all": "maybe"}), expected_faults(&[("/credit_all", "not_a_boolean")])),
        (
            json!({"credit_all": false, "row_indexes": ["x"]}),
            expected_faults(&[("/row_indexes/0", "not_an_integer")]),
        ),
    ] {
        let refused = user.act("invoices", &draft, "credit", body).await.expect(422);
        assert_eq!(refused.faults(), expected);
    }
    user.api.post("/v1/invoices/nonsense/credit", json!({})).await.expect(404);
    let quote = user.create("quotes", json!({"title": "T"})).await;
    user.api.post(&format!("/v1/invoices/{}/credit", id(&quote)), json!({})).await.expect(404);
    let empty = user.create("invoices", json!({"title": "T"})).await;
    user.act("invoices", &empty, "credit", json!({})).await.expect(409);
    assert_eq!(user.get("invoices", &draft).await, draft);
    // A POST without a body is a full credit.
    let bare =
        user.api.send(http::Method::POST, &format!("/v1/invoices/{}/credit", id(&draft)), &[], "").await;
    assert_eq!(bare.expect(201).at("/data/total_incl_vat"), -3.0);
}

#[tokio::test]
async fn what_is_open_goes_down_and_what_was_paid_is_to_be_refunded() {
    let world = World::new().await;
    let user = world.user().await;
    let invoice = user.invoice(&user.client("C").await, &[40, 60]).await;
    let now = async |document: &Value| settlement(&user.get("invoices", document).await);
    let first = user.credit(&invoice, rows(&[0])).await;
    assert_eq!(now(&invoice).await, settled("partially_credited", 60.0, 0.0));
    assert_eq!(now(&first).await, settled("credited", 0.0, 0.0));
    let part = user.pay(&invoice, json!({"amount": 20})).await;
    assert_eq!(part["invoice"], json!({"id": invoice["id"], "paid_amount": 20.0, "price": 100.0}));
    assert_eq!(now(&invoice).await, settled("partially_paid", 40.0, 0.0));
    assert_eq!(user.pay(&invoice, json!({})).await["payment"]["amount"], 40.0, "what is still open");
    assert_eq!(now(&invoice).await, settled("paid", 0.0, 0.0));
    // Beyond what is left, but not beyond the total: the first credit is to be refunded.
    user.pay(&invoice, json!({"amount": 10})).await;
    assert_eq!(now(&first).await, settled("open", -10.0, 0.0));
    let second = user.credit(&invoice, json!({})).await;
    assert_eq!(now(&invoice).await, settled("credited", 0.0, 0.0));
    assert_eq!(settlement(&second), settled("open", -60.0, 0.0));
    assert_eq!(now(&second).await, settled("open", -60.0, 0.0));
    assert_eq!(now(&first).await, settled("open", -10.0, 0.0));

    let refund = user.pay(&second, json!({"date": "2026-11-20"})).await;
    assert_eq!(refund["payment"]["amount"], -60.0);
    let refunded = user.get("invoices", &second).await;
    assert_eq!(settlement(&refunded), settled("paid", 0.0, 0.0));
    assert_eq!(refunded["paid_at"], "2026-11-20T00:00:00.000Z");
    let sign = user.act("invoices", &first, "payments", json!({"amount": 10})).await.expect(422);
    assert_eq!(sign.faults(), expected_faults(&[("/amount", "out_of_range")]));
    // Later payments leave it credited.
    user.pay(&invoice, json!({"amount": 50})).await;
    assert_eq!(now(&invoice).await, settled("credited", 0.0, 20.0));
    assert_eq!(now(&first).await, settled("open", -40.0, 0.0));
}

#[tokio::test]
async fn what_is_paid_on_the_credit_of_a_negative_row_is_paid_on_the_invoice() {
    let world = World::new().await;
    let user = world.user().await;
    let rows = json!([{"name": "Bread", "unit_price": 100}, {"name": "Discount", "unit_price": -50}]);
    let body =
        json!({"title": "T", "client_id": user.client("C").await, "rows": rows, "generation_mode": "final"});
    let invoice = user.create("invoices", body).await;
    assert_eq!(settlement(&invoice), settled("open", 60.5, 0.0));
    let credit = user.credit(&invoice, json!({"credit_all": false, "row_indexes": [1]})).await;
    assert_eq!(
        (&credit["total_incl_vat"], settlement(&credit)),
        (&json!(60.5), settled("credited", 0.0, 0.0))
    );
    assert_eq!(settlement(&user.get("invoices", &invoice).await), settled("partially_credited", 121.0, 0.0));
    user.pay(&credit, json!({"amount": 60.5})).await;
    assert_eq!(settlement(&user.get("invoices", &credit).await), settled("credited", 0.0, 0.0));
    assert_eq!(settlement(&user.get("invoices", &invoice).await), settled("partially_paid", 60.5, 0.0));
    user.pay(&invoice, json!({})).await;
    assert_eq!(settlement(&user.get("invoices", &invoice).await), settled("paid", 0.0, 0.0));
    let rest = user.credit(&invoice, json!({})).await;
    assert_eq!(settlement(&rest), settled("open", -121.0, 0.0), "all that came in goes back");
}

#[tokio::test]
async fn a_credit_of_an_invoice_made_from_its_total_takes_back_exactly_that() {
    let world = World::new().await;
    let user = world.user().await;
    let body = json!({"title": "All in", "client_id": user.client("C").await, "total_incl_vat": 10,
                      "generation_mode": "final"});
    let invoice = user.create("invoices", body).await;
    let credit = user.credit(&invoice, json!({})).await;
    for (document, sign) in [(&invoice, 1.0), (&credit, -1.0)] {
        for (name, amount) in
            [("total_excl_vat", 8.26), ("vat_amount", 1.74), ("total_incl_vat", 10.0), ("vat_rate", 21.0)]
        {
            let shown = document[name]
                .as_f64()
                .or_else(|| document[name].as_str().and_then(|text| text.parse().ok()));
            let expected = if name == "vat_rate" { amount } else { amount * sign };
            assert_eq!(shown, Some(expected), "{name} of {document}");
        }
        assert_eq!(document["rows"][0]["total_incl_vat"], 10.0 * sign);
        assert_eq!(document["meta"]["vat_breakdown"][0]["vat"], 1.74 * sign);
        let ubl = user.api.get(&format!("{}/ubl", path("invoices", document))).await.expect(200);
        let xml = String::from_utf8(ubl.body.to_vec()).unwrap();
        assert!(xml.contains(">1.74</cbc:TaxAmount>") && xml.contains(">10.00</cbc:PayableAmount>"), "{xml}");
    }
    assert_eq!(settlement(&user.get("invoices", &invoice).await), settled("credited", 0.0, 0.0));
}
