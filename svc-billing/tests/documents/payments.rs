use chassis_testing::expected_faults;
use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::support::{User, World, conflict, id, path, settled, settlement};

fn payment_path(invoice: &Value, payment: &Value) -> String {
    format!("{}/payments/{}", path("invoices", invoice), id(&payment["payment"]))
}

async fn draft(user: &User) -> Value {
    user.draft(&user.client("C").await, &[100]).await
}

#[tokio::test]
async fn a_payment_has_its_defaults_and_every_field() {
    let world = World::new().await;
    let user = world.user().await;
    let invoice = draft(&user).await;
    // 23:30 in UTC is half past midnight in Amsterdam.
    world.clock.advance(TimeDelta::minutes(750));
    let answer = user.act("invoices", &invoice, "payments", json!({})).await.expect(201);
    let made = answer.at("/data");
    let payment = json!({
        "id": made["payment"]["id"], "amount": 100.0, "date": "2026-11-16", "status": "paid", "type": "manual",
        "method": "banktransfer", "external_id": "", "provider": "",
        "meta": {"payment_data": {}, "feedback_data": {}, "created_at": "2026-11-15T23:30:00.123Z",
                 "updated_at": "2026-11-15T23:30:00.123Z", "version": 1, "invoice_id": invoice["id"]},
    });
    let paid = json!({"id": invoice["id"], "paid_amount": 100.0, "price": 100.0});
    assert_eq!(answer.json(), json!({"data": {"invoice": paid, "payment": payment}, "meta": {}}));
    let list = user.api.get(&format!("{}/payments", path("invoices", &invoice))).await.expect(200);
    assert_eq!(list.json(), json!({"data": [payment], "meta": {"total": 1}}));

    let refused = user.act("invoices", &invoice, "payments", json!({})).await.expect(422);
    assert_eq!(refused.faults(), expected_faults(&[("/amount", "required")]), "nothing is open");
    let online = json!({"type": "online", "amount": "12.50", "date": "2026-01-31", "external_id": " tr_1 ",
        "provider": "mollie", "method": "ideal", "payment_data": {"exact": 0.1, "deep": [1, {"a": null}]},
        "feedback_data": {"ok": true}});
    let made = user.pay(&invoice, online).await;
    let payment = &made["payment"];
    assert_eq!(payment["status"], "open", "an online payment has yet to be made");
    for (name, value) in [
        ("amount", json!(12.5)),
        ("date", json!("2026-01-31")),
        ("type", json!("online")),
        ("external_id", json!("tr_1")),
        ("provider", json!("mollie")),
        ("method", json!("ideal")),
    ] {
        assert_eq!(payment[name], value, "{name}");
    }
    assert_eq!(payment["meta"]["payment_data"], json!({"exact": 0.1, "deep": [1, {"a": null}]}));
    assert_eq!(payment["meta"]["feedback_data"], json!({"ok": true}));
    assert_eq!(made["invoice"]["paid_amount"], 100.0, "only what is paid counts");
}

#[tokio::test]
async fn what_is_no_payment_is_refused() {
    let world = World::new().await;
    let user = world.user().await;
    let invoice = draft(&user).await;
    for (body, place, code) in [
        (json!({"amount": 0}), "/amount", "out_of_range"),
        (json!({"amount": -1}), "/amount", "out_of_range"),
        (json!({"amount": 0.001}), "/amount", "too_precise"),
        (json!({"amount": 1e12}), "/amount", "out_of_range"),
        (json!({"amount": "ten"}), "/amount", "not_a_number"),
        (json!({"date": "2026-02-30"}), "/date", "not_a_date"),
        (json!({"type": "cash"}), "/type", "not_allowed"),
        (json!({"status": "Paid"}), "/status", "not_allowed"),
        (json!({"method": "cash"}), "/method", "not_allowed"),
        (json!({"payment_data": "text"}), "/payment_data", "not_an_object"),
    ] {
        let refused = user.act("invoices", &invoice, "payments", body.clone()).await.expect(422);
        assert_eq!(refused.faults(), expected_faults(&[(place, code)]), "{body}");
    }
    let quote = user.create("quotes", json!({"title": "T"})).await;
    for unknown in [id(&quote), "nonsense".to_owned(), world.clock.id().to_string()] {
        user.api.post(&format!("/v1/invoices/{unknown}/payments"), json!({"amount": 1})).await.expect(404);
        user.api.get(&format!("/v1/invoices/{unknown}/payments")).await.expect(404);
    }
    let all = [
        "open",
        "pending",
        "failed",
        "canceled",
        "expired",
        "authorized",
        "created",
        "chargeback",
        "refunded",
    ];
    for status in all {
        user.pay(&invoice, json!({"amount": 1, "status": status})).await;
    }
    for method in ["ideal", "paypal", "klarna", "bancontact", "in3", "creditcard", "banktransfer"] {
        user.pay(&invoice, json!({"amount": 1, "status": "open", "method": method})).await;
    }
    assert_eq!(settlement(&user.get("invoices", &invoice).await), settled("draft", 100.0, 0.0));
}

#[tokio::test]
async fn the_status_follows_every_payment() {
    let world = World::new().await;
    let user = world.user().await;
    let invoice = user.invoice(&user.client("C").await, &[100]).await;
    let now = async || {
        let document = user.get("invoices", &invoice).await;
        (settlement(&document), document["paid_at"].clone())
    };
    let on = |day: &str| json!(format!("2026-11-{day}T00:00:00.000Z"));
    let first = user.pay(&invoice, json!({"amount": 30, "date": "2026-11-03"})).await;
    assert_eq!(now().await, (settled("partially_paid", 70.0, 0.0), Value::Null));
    let second = user.pay(&invoice, json!({"date": "2026-11-02"})).await;
    assert_eq!(now().await, (settled("paid", 0.0, 0.0), on("03")));
    user.pay(&invoice, json!({"amount": 30, "date": "2026-11-01"})).await;
    assert_eq!(now().await, (settled("paid", 0.0, 30.0), on("02")));
    let moved =
        user.api.patch(&payment_path(&invoice, &first), json!({"date": "2026-10-01", "amount": "80"})).await;
    assert_eq!(moved.expect(200).at("/data/invoice/paid_amount"), 180.0);
    assert_eq!(now().await, (settled("paid", 0.0, 80.0), on("01")));
    // A free text stays until the next payment.
    user.patch("invoices", &invoice, json!({"payment_status": "disputed"})).await;
    let back =
        user.api.patch(&payment_path(&invoice, &second), json!({"status": "chargeback"})).await.expect(200);
    assert_eq!(back.at("/data/payment/status"), "chargeback");
    assert_eq!(now().await, (settled("paid", 0.0, 10.0), on("01")));
    let gone = user.delete(&payment_path(&invoice, &first)).await.expect(204);
    assert!(gone.body.is_empty());
    assert_eq!(now().await, (settled("partially_paid", 70.0, 0.0), Value::Null));
    user.delete(&payment_path(&invoice, &first)).await.expect(404);
    let payments = user.api.get(&format!("{}/payments", path("invoices", &invoice))).await.expect(200);
    assert_eq!(payments.at("/meta/total"), 2);
    let events = user.get("invoices", &invoice).await["meta"]["history"].clone();
    let events: Vec<_> = events.as_array().unwrap().iter().map(|entry| entry["event"].clone()).collect();
    let expected = [
        "payment_removed",
        "payment_changed",
        "changed",
        "payment_changed",
        "payment_added",
        "payment_added",
        "payment_added",
    ];
    assert_eq!(events, expected);
}

#[tokio::test]
async fn a_payment_patch_needs_a_field_and_null_clears_only_texts() {
    let world = World::new().await;
    let user = world.user().await;
    let invoice = draft(&user).await;
    let body = json!({"amount": 5, "external_id": "x", "provider": "p", "payment_data": {"a": 1}});
    let payment = user.pay(&invoice, body).await;
    let here = payment_path(&invoice, &payment);
    for nothing in [json!({}), json!({"type": "online", "feedback_data": {}})] {
        let refused = user.api.patch(&here, nothing).await.expect(422);
        assert_eq!(refused.faults(), expected_faults(&[("", "no_field")]));
    }
    let refused =
        user.api.patch(&here, json!({"amount": null, "date": null, "status": null, "method": null})).await;
    let mut empty: Vec<String> = refused.expect(422).faults().into_iter().map(|(place, _)| place).collect();
    empty.sort();
    assert_eq!(empty, ["/amount", "/date", "/method", "/status"]);
    for (body, place) in [
        (json!({"amount": -5}), "/amount"),
        (json!({"status": "x"}), "/status"),
        (json!({"method": "x"}), "/method"),
    ] {
        assert_eq!(user.api.patch(&here, body).await.expect(422).faults()[0].0, place);
    }
    let cleared =
        user.api.patch(&here, json!({"external_id": null, "provider": null, "payment_data": null})).await;
    let cleared = cleared.expect(200).at("/data/payment");
    assert_eq!([&cleared["external_id"], &cleared["provider"]], [&json!(""), &json!("")]);
    assert_eq!((&cleared["meta"]["payment_data"], &cleared["amount"]), (&json!({}), &json!(5.0)));
    for unknown in ["nonsense".to_owned(), world.clock.id().to_string()] {
        let there = format!("{}/payments/{unknown}", path("invoices", &invoice));
        user.api.patch(&there, json!({"amount": 1})).await.expect(404);
        user.delete(&there).await.expect(404);
    }
    let other = user.draft(&user.client("D").await, &[1]).await;
    let elsewhere = payment_path(&other, &payment);
    user.api.patch(&elsewhere, json!({"amount": 1})).await.expect(404);
    user.delete(&elsewhere).await.expect(404);
}

#[tokio::test]
async fn an_online_payment_that_ended_does_not_become_paid_again() {
    let world = World::new().await;
    let user = world.user().await;
    let invoice = draft(&user).await;
    for status in ["refunded", "canceled", "expired", "failed"] {
        let online = user.pay(&invoice, json!({"type": "online", "amount": 1, "status": status})).await;
        let here = payment_path(&invoice, &online);
        assert_eq!(conflict(user.api.patch(&here, json!({"status": "paid"})).await), "payment_final");
        user.api.patch(&here, json!({"status": status, "provider": "p"})).await.expect(200);
        let manual = user.pay(&invoice, json!({"amount": 1, "status": status})).await;
        user.api.patch(&payment_path(&invoice, &manual), json!({"status": "paid"})).await.expect(200);
    }
    let online = user.pay(&invoice, json!({"type": "online", "amount": 1})).await;
    for status in ["pending", "authorized", "paid", "chargeback", "paid", "refunded", "open", "paid"] {
        user.api.patch(&payment_path(&invoice, &online), json!({"status": status})).await.expect(200);
    }
}

#[tokio::test]
async fn an_external_id_belongs_to_one_payment_of_an_invoice() {
    let world = World::new().await;
    let user = world.user().await;
    let (invoice, other) = (draft(&user).await, draft(&user).await);
    let body = json!({"amount": 1, "external_id": "tr_1"});
    let first = user.pay(&invoice, body.clone()).await;
    let taken = user.act("invoices", &invoice, "payments", body.clone()).await.expect(409);
    assert_eq!(
        (taken.at("/code"), taken.at("/data/id")),
        (json!("external_id_taken"), first["payment"]["id"].clone())
    );
    user.pay(&other, body).await;
    let second = user.pay(&invoice, json!({"amount": 1})).await;
    let here = payment_path(&invoice, &second);
    assert_eq!(conflict(user.api.patch(&here, json!({"external_id": "tr_1"})).await), "external_id_taken");
    user.api
        .patch(&payment_path(&invoice, &first), json!({"external_id": "tr_1", "amount": 2}))
        .await
        .expect(200);
    user.delete(&payment_path(&invoice, &first)).await.expect(204);
    user.api.patch(&here, json!({"external_id": "tr_1"})).await.expect(200);
}

#[tokio::test]
async fn payments_are_listed_in_their_order_and_filtered() {
    let world = World::new().await;
    let user = world.user().await;
    let invoice = draft(&user).await;
    for (amount, kind, status, external_id) in [
        (1, "manual", "paid", "a"),
        (2, "online", "open", "b"),
        (3, "online", "paid", ""),
        (4, "manual", "open", ""),
    ] {
        let body = json!({"amount": amount, "type": kind, "status": status, "external_id": external_id});
        user.pay(&invoice, body).await;
    }
    for (query, expected) in [
        ("", vec![1.0, 2.0, 3.0, 4.0]),
        ("?type=online", vec![2.0, 3.0]),
        ("?status=paid", vec![1.0, 3.0]),
        ("?status=open&type=manual", vec![4.0]),
        ("?external_id=b", vec![2.0]),
        ("?external_id=c", vec![]),
        ("?status=failed", vec![]),
        ("?method=banktransfer&status=open", vec![2.0, 4.0]),
        ("?method=ideal", vec![]),
        ("?date_from=2026-11-16", vec![]),
        ("?date_to=2026-11-15&type=online", vec![2.0, 3.0]),
        ("?status=&type=&external_id=&page=7", vec![1.0, 2.0, 3.0, 4.0]),
    ] {
        let list =
            user.api.get(&format!("{}/payments{query}", path("invoices", &invoice))).await.expect(200).json();
        let amounts: Vec<f64> = list["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|payment| payment["amount"].as_f64().unwrap())
            .collect();
        assert_eq!(
            (amounts, &list["meta"]),
            (expected.clone(), &json!({"total": expected.len()})),
            "{query}"
        );
    }
    for query in ["?status=lost", "?type=cash"] {
        user.api.get(&format!("{}/payments{query}", path("invoices", &invoice))).await.expect(422);
    }
}
