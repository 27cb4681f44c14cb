use chassis_testing::expected_faults;
use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::support::{World, conflict, id, path, row};

#[tokio::test]
async fn the_client_is_named_by_id_by_external_id_or_by_both() {
    let world = World::new().await;
    let user = world.user().await;
    let first = user.client_with(json!({"company_name": "First", "external_id": "crm-1"})).await;
    let second = user.client("Second").await;
    for named in [
        json!({"client_id": first}),
        json!({"client_external_id": " crm-1 "}),
        json!({"client_id": first, "client_external_id": "crm-1"}),
    ] {
        let mut body = named.clone();
        body["title"] = json!("T");
        let document = user.create("quotes", body).await;
        assert_eq!(
            (&document["client_id"], &document["client_company_name"]),
            (&json!(first), &json!("First"))
        );
    }
    let supplier = user.api.post("/v1/suppliers", json!({"company_name": "Mill"})).await.expect(201);
    for (named, place, code) in [
        (json!({"client_id": world.clock.id().to_string()}), "/client_id", "unknown_reference"),
        (json!({"client_id": "4711"}), "/client_id", "unknown_reference"),
        (json!({"client_id": supplier.at("/data/id")}), "/client_id", "unknown_reference"),
        (json!({"client_external_id": "crm-2"}), "/client_external_id", "unknown_reference"),
        (json!({"client_external_id": "a\u{0}b"}), "/client_external_id", "bad_text"),
        (json!({"client_external_id": "x".repeat(256)}), "/client_external_id", "too_long"),
        (json!({"client_id": second, "client_external_id": "crm-1"}), "/client_external_id", "conflicting"),
        (json!({"generation_mode": "final", "rows": [row("a", 1, 1)]}), "/client_id", "required"),
    ] {
        let mut body = named.clone();
        body["title"] = json!("T");
        let refused = user.api.post("/v1/invoices", body).await.expect(422);
        assert_eq!(refused.faults(), expected_faults(&[(place, code)]), "{named}");
    }
    assert_eq!(user.total("invoices").await, 0);
}

#[tokio::test]
async fn dates_default_to_today_and_the_clients_term() {
    let world = World::new().await;
    let user = world.user().await;
    let patient =
        user.client_with(json!({"company_name": "P", "payment_term": 45, "quote_expiration_days": 0})).await;
    let plain = user.client("Q").await;
    let dates = async |list: &str, body: Value| {
        let mut body = body;
        body["title"] = json!("T");
        let document = user.create(list, body).await;
        [&document["invoice_date"], &document["due_date"]].map(|date| date.as_str().unwrap().to_owned())
    };
    assert_eq!(dates("invoices", json!({})).await, ["2026-11-15", "2026-11-29"]);
    assert_eq!(dates("invoices", json!({"client_id": plain})).await, ["2026-11-15", "2026-11-29"]);
    assert_eq!(dates("invoices", json!({"client_id": patient})).await, ["2026-11-15", "2026-12-30"]);
    assert_eq!(dates("quotes", json!({"client_id": plain})).await, ["2026-11-15", "2026-12-15"]);
    assert_eq!(dates("quotes", json!({"client_id": patient})).await, ["2026-11-15", "2026-11-15"]);
    let given = json!({"client_id": patient, "invoice_date": "2024-02-29"});
    assert_eq!(dates("workorders", given).await, ["2024-02-29", "2024-04-14"]);
    let both = json!({"invoice_date": "2026-01-01", "due_date": "2026-01-01"});
    assert_eq!(dates("invoices", both).await, ["2026-01-01", "2026-01-01"]);
    assert_eq!(dates("quotes", json!({"invoice_date": "9999-12-30"})).await, ["9999-12-30", "9999-12-31"]);
    // 23:30 in UTC is half past midnight in Amsterdam.
    world.clock.advance(TimeDelta::minutes(750));
    assert_eq!(dates("invoices", json!({})).await, ["2026-11-16", "2026-11-30"]);
}

#[tokio::test]
async fn dates_that_cannot_be_are_refused() {
    let world = World::new().await;
    let user = world.user().await;
    for (dates, place, code) in [
        (json!({"invoice_date": "2026-02-30"}), "/invoice_date", "not_a_date"),
        (json!({"due_date": "15-11-2026"}), "/due_date", "not_a_date"),
        (json!({"due_date": "2026-11-14"}), "/due_date", "conflicting"),
        (json!({"invoice_date": "2026-12-01", "due_date": "2026-11-30"}), "/due_date", "conflicting"),
    ] {
        let mut body = dates.clone();
        body["title"] = json!("T");
        let refused = user.api.post("/v1/invoices", body).await.expect(422);
        assert_eq!(refused.faults(), expected_faults(&[(place, code)]), "{dates}");
    }
}

#[tokio::test]
async fn every_fault_of_a_body_is_told_with_its_place() {
    let world = World::new().await;
    let user = world.user().await;
    let body = json!({
        "title": "  ", "invoice_date": 5, "generation_mode": "later", "external_id": "x".repeat(256),
        "rows": [
            {"quantity": 1},
            {"name": "a", "quantity": "many"},
            {"name": "a", "quantity": 1.00001, "unit_price": 1.00001},
            {"name": "a", "unit_price": 1e12},
            {"name": "a", "vat_rate": "101"},
            {"name": "a", "vat_rate": "-1"},
            {"name": "a", "vat_code": "nonsense"},
            {"name": "x".repeat(256)},
            "bread",
        ],
        "total_incl_vat": 1.234,
    });
    let refused = user.api.post("/v1/invoices", body).await.expect(422);
    assert_eq!(refused.at("/code"), "validation");
    let mut faults = refused.faults();
    faults.sort();
    let expected = expected_faults(&[
        ("/external_id", "too_long"),
        ("/generation_mode", "not_allowed"),
        ("/invoice_date", "not_a_string"),
        ("/rows/0/name", "required"),
        ("/rows/1/quantity", "not_a_number"),
        ("/rows/2/quantity", "too_precise"),
        ("/rows/2/unit_price", "too_precise"),
        ("/rows/3/unit_price", "out_of_range"),
        ("/rows/4/vat_rate", "out_of_range"),
        ("/rows/5/vat_rate", "out_of_range"),
        ("/rows/6/vat_code", "unknown_reference"),
        ("/rows/7/name", "too_long"),
        ("/rows/8", "not_an_object"),
        ("/title", "required"),
        ("/total_incl_vat", "too_precise"),
    ]);
    assert_eq!(faults, expected);
    assert_eq!(user.total("invoices").await, 0);
}

#[tokio::test]
async fn a_document_has_at_most_500_rows_and_a_final_invoice_at_least_one() {
    let world = World::new().await;
    let user = world.user().await;
    let rows: Vec<Value> = (0..500).map(|index| row(&format!("Row {index}"), 1, 1)).collect();
    let document = user.create("invoices", json!({"title": "T", "rows": rows})).await;
    let shown = user.get("invoices", &document).await;
    assert_eq!((shown["rows"].as_array().unwrap().len(), &shown["total_incl_vat"]), (500, &json!(500.0)));
    assert_eq!(shown["rows"][499]["name"], "Row 499", "in their order");
    let more: Vec<Value> = (0..501).map(|_| row("a", 1, 1)).collect();
    let refused = user.api.post("/v1/invoices", json!({"title": "T", "rows": more})).await.expect(422);
    assert_eq!(refused.faults(), expected_faults(&[("/rows", "too_many")]));
    let body = json!({"title": "T", "client_id": user.client("C").await, "generate": true, "rows": []});
    let refused = user.api.post("/v1/invoices", body).await.expect(422);
    assert_eq!(refused.faults(), expected_faults(&[("/rows", "required")]));
}

#[tokio::test]
async fn vat_is_computed_for_each_rate_and_broken_down() {
    let world = World::new().await;
    let user = world.user().await;
    let of = |price: &str, rate: Value| json!({"name": "a", "unit_price": price, "vat_rate": rate});
    // Rounded row by row the VAT of 21 % would be 0.06, over their sum it is 0.07.
    let rows = [
        of("0.11", json!("21")),
        of("0.11", json!("21%")),
        of("0.11", json!(21.0)),
        of("10", json!("9")),
        of("5", json!("0")),
    ];
    let document = user.create("invoices", json!({"title": "T", "rows": rows})).await;
    let lines = document["meta"]["vat_breakdown"].as_array().unwrap();
    let lines: Vec<_> = lines.iter().map(|line| [&line["rate"], &line["taxable"], &line["vat"]]).collect();
    assert_eq!(
        lines,
        [
            [&json!(21), &json!(0.33), &json!(0.07)],
            [&json!(9), &json!(10.0), &json!(0.9)],
            [&json!(0), &json!(5.0), &json!(0.0)]
        ]
    );
    let sums = ["subtotal", "total_excl_vat", "vat_amount", "total_incl_vat", "vat_rate"]
        .map(|name| &document[name]);
    assert_eq!(sums, [&json!(15.33), &json!(15.33), &json!(0.97), &json!(16.3), &json!(6.33)]);
}

#[tokio::test]
async fn totals_are_compared_with_the_rows_and_make_a_row_where_there_is_none() {
    let world = World::new().await;
    let user = world.user().await;
    let row = json!({"name": "a", "quantity": 2, "unit_price": 50, "vat_rate": "21", "total_incl_vat": 7,
                     "subtotal": "nonsense"});
    let right = json!({"title": "T", "rows": [row], "subtotal": 100, "vat_rate": 21, "vat_amount": "21.00",
                       "total_excl_vat": 100.0, "total_incl_vat": 121});
    user.create("invoices", right.clone()).await;
    let mut wrong = right;
    wrong["total_incl_vat"] = json!(120.99);
    let refused = user.api.post("/v1/invoices", wrong).await.expect(422);
    assert_eq!(refused.faults(), expected_faults(&[("/total_incl_vat", "conflicting")]));
    let detail = refused.at("/errors/0/detail");
    let detail = detail.as_str().unwrap();
    assert!(detail.contains("120.99") && detail.contains("121.00"), "{detail}");

    for rate in [-1, 101] {
        let body = json!({"title": "All in", "total_incl_vat": 109, "vat_rate": rate});
        let refused = user.api.post("/v1/quotes", body).await.expect(422);
        assert_eq!(refused.faults(), expected_faults(&[("/vat_rate", "out_of_range")]));
    }
    let made = user.create("quotes", json!({"title": "All in", "total_incl_vat": 100})).await;
    assert_eq!((&made["total_excl_vat"], &made["vat_amount"]), (&json!(82.64), &json!(17.36)));
    assert_eq!((&made["total_incl_vat"], &made["rows"][0]["total_incl_vat"]), (&json!(100.0), &json!(100.0)));
    let made = user.create("quotes", json!({"title": "All in", "total_incl_vat": 109, "vat_rate": 9})).await;
    assert_eq!((&made["total_excl_vat"], &made["vat_amount"]), (&json!(100.0), &json!(9.0)));
    let row = &made["rows"][0];
    assert_eq!(
        [&row["name"], &row["quantity"], &row["unit_price"]],
        [&json!("All in"), &json!(1), &json!(100)]
    );
}

#[tokio::test]
async fn an_external_id_belongs_to_one_document_of_its_kind() {
    let world = World::new().await;
    let user = world.user().await;
    let body = json!({"title": "T", "external_id": "order-1"});
    let first = user.create("invoices", body.clone()).await;
    let taken = user.api.post("/v1/invoices", body.clone()).await.expect(409);
    assert_eq!((taken.at("/code"), taken.at("/data/id")), (json!("external_id_taken"), first["id"].clone()));
    user.create("quotes", body.clone()).await;
    assert_eq!(conflict(user.api.post("/v1/quotes", body.clone()).await), "external_id_taken");
    world.user().await.create("invoices", body).await;
    for _ in 0..2 {
        user.create("invoices", json!({"title": "T", "external_id": ""})).await;
    }
    assert_eq!((user.total("invoices").await, user.total("quotes").await), (json!(3), json!(1)));
}

#[tokio::test]
async fn a_status_of_ones_own_stays() {
    let world = World::new().await;
    let user = world.user().await;
    let document = user.create("workorders", json!({"title": "T", "payment_status": " planned "})).await;
    assert_eq!(document["payment_status"], "planned");
    let paid = user.create("invoices", json!({"title": "T", "payment_status": "paid"})).await;
    assert_eq!(paid["paid_at"], "2026-11-15T11:00:00.123Z");
    assert_eq!(user.get("workorders", &document).await, document);
    user.api.get(&format!("/v1/quotes/{}", id(&document))).await.expect(404);
    user.api.get(&format!("{}x", path("workorders", &document))).await.expect(404);
}
