//! Filters by what is still to be paid, by amounts and by references, and the payments on all invoices.

use chassis_testing::{assert_filters_counted, expected_faults};
use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::support::{User, World, id, path};

/// What a query of a list selects, newest first. Checks the total, and that pages of one entry show the same.
async fn found(user: &User, list: &str, query: &str) -> Vec<String> {
    let ids = |answer: &Value| -> Vec<String> { answer["data"].as_array().unwrap().iter().map(id).collect() };
    let get = async |more: &str| user.api.get(&format!("/v1/{list}?{query}{more}")).await.expect(200).json();
    let answer = get("&per_page=100").await;
    let all = ids(&answer);
    assert_eq!(answer["meta"]["total"], all.len(), "{query}");
    if all.len() > 1 {
        let second = get("&per_page=1&page=2").await;
        assert_eq!(
            (ids(&second), &second["meta"]["total"]),
            (vec![all[1].clone()], &json!(all.len())),
            "{query}"
        );
    }
    all
}

#[tokio::test]
async fn invoices_are_filtered_by_what_is_still_to_be_paid() {
    let world = World::new().await;
    let (user, stranger) = (world.user().await, world.user().await);
    let client = user.client("Bakery").await;
    let draft = id(&user.draft(&client, &[100]).await);
    let open = user.invoice(&client, &[100]).await;
    let part = user.invoice(&client, &[200]).await;
    user.pay(&part, json!({"amount": 50})).await;
    let paid = user.invoice(&client, &[300]).await;
    user.pay(&paid, json!({})).await;
    let credited = user.invoice(&client, &[400]).await;
    let credit = id(&user.credit(&credited, json!({})).await);
    let disputed = user.invoice(&client, &[500]).await;
    user.patch("invoices", &disputed, json!({"payment_status": "disputed"})).await;
    let later = json!({"due_date": "2027-01-31"});
    user.patch("invoices", &part, later).await;
    stranger.invoice(&stranger.client("Farm").await, &[100]).await;
    let [open, part, paid, credited, disputed] = [&open, &part, &paid, &credited, &disputed].map(id);
    let all = [&disputed, &credit, &credited, &paid, &part, &open, &draft];
    let without = |gone: &[&String]| -> Vec<String> {
        all.iter().filter(|id| !gone.contains(id)).map(ToString::to_string).collect()
    };
    assert_eq!(found(&user, "invoices", "overdue=true").await, [""; 0], "nothing is due yet");
    assert_eq!(found(&user, "invoices", "overdue=false").await, without(&[]));
    // The due date of most has passed.
    world.clock.advance(TimeDelta::days(15));
    for (query, expected) in [
        ("open=true", vec![&part, &open]),
        ("open=1&overdue=true", vec![&open]),
        ("overdue=true", vec![&open]),
        ("overdue=true&sort=due_date", vec![&open]),
        ("open=true&payment_status=partially_paid", vec![&part]),
        ("open=true&amount_from=150", vec![&part]),
        ("open=true&generation_mode=draft", vec![]),
        ("generation_mode=draft", vec![&draft]),
        ("is_credit=true", vec![&credit]),
        ("is_credit=true&open=true", vec![]),
        (&format!("credits={credited}"), vec![&credit]),
        (&format!("credits={open}"), vec![]),
        ("amount_from=200&amount_to=300", vec![&paid, &part]),
        ("amount_to=-0.01", vec![&credit]),
        ("subscription_id=x", vec![]),
    ] {
        assert_eq!(found(&user, "invoices", query).await.iter().collect::<Vec<_>>(), expected, "{query}");
    }
    assert_eq!(found(&user, "invoices", "open=false").await, without(&[&open, &part]));
    assert_eq!(found(&user, "invoices", "overdue=false").await, without(&[&open]));
    assert_eq!(found(&user, "invoices", "generation_mode=final").await, without(&[&draft]));
    assert_eq!(found(&user, "invoices", "is_credit=false").await, without(&[&credit]));
    assert_eq!(found(&user, "quotes", "open=true").await, [""; 0]);
    let query = "open=maybe&overdue=x&amount_from=much&generation_mode=ready&is_credit=2";
    let mut refused = user.api.get(&format!("/v1/invoices?{query}")).await.expect(422).faults();
    refused.sort();
    let names: Vec<&str> = refused.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["amount_from", "generation_mode", "is_credit", "open", "overdue"]);
}

#[tokio::test]
async fn a_document_is_found_by_exactly_its_external_id_and_only_in_its_list() {
    let world = World::new().await;
    let (user, stranger) = (world.user().await, world.user().await);
    let body = |reference: &str| json!({"title": "Bread", "external_id": reference});
    let one = id(&user.create("invoices", body("Order-1")).await);
    user.create("invoices", body("order-1")).await;
    user.create("quotes", body("Order-1")).await;
    stranger.create("invoices", body("Order-1")).await;
    assert_eq!(found(&user, "invoices", "external_id=Order-1").await, std::slice::from_ref(&one));
    assert_eq!(found(&user, "invoices", "external_id=%20Order-1%20&sort=title").await, [one]);
    assert_eq!(found(&user, "invoices", "external_id=Order").await, [""; 0]);
    assert_eq!(found(&user, "invoices", "external_id=Order-1&generation_mode=final").await, [""; 0]);
}

#[tokio::test]
async fn payments_on_all_invoices_are_listed_and_filtered() {
    let world = World::new().await;
    let (user, stranger) = (world.user().await, world.user().await);
    let (mill, farm) = (user.client("Mill").await, user.client("Farm").await);
    let (first, second) = (user.invoice(&mill, &[100]).await, user.invoice(&farm, &[100]).await);
    let pay = async |user: &User, invoice: &Value, body: Value| {
        world.clock.advance(TimeDelta::seconds(1));
        id(&user.pay(invoice, body).await["payment"])
    };
    let a = json!({"amount": 10, "date": "2026-11-01", "external_id": "tr", "provider": "bank"});
    let a = pay(&user, &first, a).await;
    let b = pay(&user, &second, json!({"amount": 20, "date": "2026-11-02", "external_id": "tr"})).await;
    let c =
        json!({"amount": 30, "date": "2026-11-03", "status": "open", "type": "online", "method": "ideal"});
    let c = pay(&user, &second, c).await;
    let foreign = stranger.invoice(&stranger.client("Farm").await, &[100]).await;
    pay(&stranger, &foreign, json!({"amount": 10, "external_id": "tr"})).await;
    let (first, second) = (id(&first), id(&second));
    for (query, expected) in [
        ("", vec![&c, &b, &a]),
        ("order=asc", vec![&a, &b, &c]),
        ("sort=amount&order=asc", vec![&a, &b, &c]),
        ("sort=date", vec![&c, &b, &a]),
        (&format!("invoice_id={second}"), vec![&c, &b]),
        (&format!("invoice_id={first}&status=open"), vec![]),
        (&format!("client_id={mill}"), vec![&a]),
        ("client_id=x", vec![]),
        ("status=paid", vec![&b, &a]),
        ("status=failed", vec![]),
        ("type=online", vec![&c]),
        ("method=ideal&status=open", vec![&c]),
        ("method=banktransfer", vec![&b, &a]),
        ("external_id=tr", vec![&b, &a]),
        ("external_id=tr&provider=bank", vec![&a]),
        ("external_id=t", vec![]),
        ("date_from=2026-11-02", vec![&c, &b]),
        ("date_from=2026-11-02&date_to=2026-11-02", vec![&b]),
        ("amount_from=10.01&amount_to=20", vec![&b]),
        (&format!("id={a},{c}"), vec![&c, &a]),
    ] {
        assert_eq!(found(&user, "payments", query).await.iter().collect::<Vec<_>>(), expected, "{query}");
    }
    let listed = user.api.get(&format!("/v1/payments?id={a}")).await.expect(200).at("/data/0");
    let on_invoice = user.api.get(&format!("/v1/invoices/{first}/payments")).await.expect(200).at("/data/0");
    assert_eq!((&listed, &listed["meta"]["invoice_id"]), (&on_invoice, &json!(first)));
    let mut refused =
        user.api.get("/v1/payments?status=lost&method=cash&date_to=x").await.expect(422).faults();
    refused.sort();
    let expected = [("date_to", "not_a_date"), ("method", "not_allowed"), ("status", "not_allowed")];
    assert_eq!(refused, expected_faults(&expected));
}

#[tokio::test]
async fn what_changes_a_payment_changes_the_counters_of_its_filters() {
    let world = World::new().await;
    let user = world.user().await;
    let invoice = user.invoice(&user.client("Mill").await, &[100]).await;
    let one = id(&user.pay(&invoice, json!({"amount": 10})).await["payment"]);
    let two = id(&user.pay(&invoice, json!({"amount": 20})).await["payment"]);
    // Old enough to be in a segment.
    world.clock.advance(TimeDelta::hours(1));
    assert_eq!(user.total("payments?status=paid").await, 2);
    let payment = |id: &str| format!("{}/payments/{id}", path("invoices", &invoice));
    user.api.patch(&payment(&one), json!({"status": "failed", "method": "ideal"})).await.expect(200);
    user.delete(&payment(&two)).await.expect(204);
    assert_eq!(
        (user.total("payments?status=paid").await, user.total("payments").await),
        (json!(0), json!(1))
    );
    assert_filters_counted(&world.database, "payment", "billing.payment", "true").await;
}
