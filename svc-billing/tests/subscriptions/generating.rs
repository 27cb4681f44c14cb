use serde_json::{Value, json};

use crate::support::{User, World, id};

/// The events about invoices, in their order.
async fn events(world: &World, user: &User) -> Vec<(String, Value)> {
    sqlx::query_as(
        "select event, data::json from billing.log where event is not null and account_id = $1 and kind = 'invoice'
         order by id",
    )
    .bind(user.account.id)
    .fetch_all(&mut world.database.connect().await)
    .await
    .unwrap()
}

/// The depth of each event, in their order.
async fn depths(world: &World, user: &User) -> Vec<i32> {
    sqlx::query_scalar(
        "select depth from billing.log where event is not null and account_id = $1 order by id",
    )
    .bind(user.account.id)
    .fetch_all(&mut world.database.connect().await)
    .await
    .unwrap()
}

#[tokio::test]
async fn the_invoices_of_a_subscription_have_the_automation_depth_of_its_creation() {
    let world = World::working(1).await;
    let user = world.user().await;
    let client = user.client("Bakery").await;
    let body = json!({
        "client_id": client, "title": "Hosting", "subscription_start": "2026-11-30",
        "lines": [{"title": "Server", "unit_price": 10, "vat_code": "VAT0"}],
    });
    let json = ("content-type", "application/json");
    for more in [None, Some(("x-automation-depth", "5"))] {
        let headers: Vec<(&str, &str)> = [json].into_iter().chain(more).collect();
        let made = user.api.send(http::Method::POST, "/v1/subscriptions", &headers, body.to_string()).await;
        made.expect(201);
    }
    world.move_to("2026-11-29T23:00:00Z");
    world.settled(&user).await;
    let mut depths = depths(&world, &user).await;
    depths.sort_unstable();
    assert_eq!(depths, [0, 5], "an invoice of each");
}

#[tokio::test]
async fn a_date_makes_one_final_invoice_at_midnight_of_the_account() {
    let world = World::working(1).await;
    let user = world.user().await;
    let lines = json!([{"title": "Server", "quantity": 3, "unit_price": "9.95", "unit": "month"}]);
    let created = user.hosting(json!({"lines": lines})).await;
    world.move_to("2026-11-29T22:59:59Z");
    world.settled(&user).await;
    assert_eq!(user.dates(&created).await, [""; 0], "it is still the 29th");
    world.move_to("2026-11-29T23:00:00Z");
    world.settled(&user).await;
    let invoices = user.invoices(&created).await;
    let [item] = invoices.as_slice() else { panic!("{invoices:?}") };
    let path = format!("/v1/invoices/{}", id(item));
    let invoice = user.api.get(&path).await.expect(200).at("/data");
    for (name, value) in [
        ("number", json!("INV-2026-00001")),
        ("title", json!("Hosting")),
        ("client_id", created["client_id"].clone()),
        ("client_company_name", json!("Bakery")),
        ("invoice_date", json!("2026-11-30")),
        ("due_date", json!("2026-12-14")),
        ("generation_mode", json!("final")),
        ("payment_status", json!("open")),
        ("total_incl_vat", json!(36.12)),
    ] {
        assert_eq!(invoice[name], value, "{name}");
    }
    assert_eq!(invoice["rows"][0]["name"], "Server");
    assert_eq!(invoice["rows"][0]["total_excl_vat"], json!(29.85));
    assert_eq!(invoice["meta"]["subscription_id"], created["id"]);
    assert_eq!(invoice["meta"]["period"], json!({"from": "2026-11-30", "to": "2026-12-29"}));
    let after = user.get(&created).await;
    assert_eq!(
        (&after["last_generated"], &after["next_generate"]),
        (&json!("2026-11-30"), &json!("2026-12-30"))
    );

    let events = events(&world, &user).await;
    let [(kind, data)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((kind.as_str(), &data["id"]), ("invoice.created", &invoice["id"]));
    assert_eq!(data["subscription_id"], created["id"]);
    let total = user.api.get("/v1/invoices").await.at("/meta/total");
    assert_eq!(total, 1, "it is counted like any other");
}

#[tokio::test]
async fn invoices_missed_during_months_of_downtime_are_created_without_drift() {
    let mut world = World::new().await;
    let user = world.user().await;
    let monthly = user.hosting(json!({"subscription_start": "2026-12-31"})).await;
    let weekly = user.hosting(json!({"frequency": "four_weeks", "day_of_week": 3})).await;
    world.move_to("2027-04-10T08:00:00Z");
    world.add_replica().await;
    world.settled(&user).await;
    assert_eq!(user.dates(&monthly).await, ["2026-12-31", "2027-01-31", "2027-02-28", "2027-03-31"]);
    let expected = ["2026-12-02", "2026-12-30", "2027-01-27", "2027-02-24", "2027-03-24"];
    assert_eq!(user.dates(&weekly).await, expected);
    let numbers: Vec<String> = sqlx::query_scalar(
        "select number from billing.document where account_id = $1 order by invoice_date, number",
    )
    .bind(user.account.id)
    .fetch_all(&mut world.database.connect().await)
    .await
    .unwrap();
    assert_eq!(numbers[..3], ["INV-2026-00001", "INV-2026-00002", "INV-2026-00003"]);
    assert_eq!(numbers[3], "INV-2027-00001", "each year has its own, in the order of the dates");
    assert_eq!(numbers.len(), 9);
    assert_eq!(user.get(&monthly).await["next_generate"], "2027-04-30");
}

#[tokio::test]
async fn a_first_date_in_the_past_is_billed_at_once() {
    let world = World::working(1).await;
    let user = world.user().await;
    let past = json!({"subscription_start": "2026-01-31", "first_generate_date": "2026-09-30"});
    let created = user.hosting(past).await;
    assert_eq!(created["next_generate"], "2026-09-30");
    world.settled(&user).await;
    assert_eq!(user.dates(&created).await, ["2026-09-30", "2026-10-31"]);
}

#[tokio::test]
async fn a_change_applies_to_later_invoices() {
    let world = World::working(1).await;
    let user = world.user().await;
    let created = user.hosting(json!({})).await;
    world.move_to("2026-12-01T12:00:00Z");
    world.settled(&user).await;
    let body = json!({
        "title": "More hosting", "day_of_month": 15,
        "lines": [{"title": "Servers", "unit_price": 20, "vat_code": "VAT0"}],
    });
    let changed = user.patch(&created, body).await.expect(200).at("/data");
    assert_eq!(changed["next_generate"], "2027-01-15", "the days until 29 December have their invoice");
    assert_eq!(changed["meta"]["unbilled_days"], 16);
    world.move_to("2027-01-20T12:00:00Z");
    world.settled(&user).await;
    let invoices = user.invoices(&created).await;
    let shown: Vec<Value> = invoices
        .iter()
        .map(|invoice| json!([invoice["invoice_date"], invoice["title"], invoice["total_incl_vat"]]))
        .collect();
    let expected = [json!(["2026-11-30", "Hosting", 10.00]), json!(["2027-01-15", "More hosting", 20.00])];
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn a_draft_makes_nothing_until_it_is_activated() {
    let world = World::working(1).await;
    let user = world.user().await;
    let draft = user.hosting(json!({"subscription_start": null})).await;
    world.move_to("2026-12-31T12:00:00Z");
    world.settled(&user).await;
    assert_eq!(user.dates(&draft).await, [""; 0]);
    user.act(&draft, "activate", json!({})).await.expect(200);
    world.settled(&user).await;
    assert_eq!(user.dates(&draft).await, ["2026-12-31"]);
}

#[tokio::test]
async fn a_subscription_that_cannot_be_billed_says_why_and_blocks_no_other() {
    let world = World::working(1).await;
    let user = world.user().await;
    let lost = user.hosting(json!({"subscription_start": "2026-11-20"})).await;
    let sound = user.hosting(json!({"subscription_start": "2026-11-21"})).await;
    let client = lost["client_id"].as_str().unwrap();
    let mut connection = world.database.connect().await;
    let hide = "update relations.relation set role = 'supplier' where id = $1::uuid";
    sqlx::query(hide).bind(client).execute(&mut connection).await.unwrap();
    world.move_to("2026-11-21T12:00:00Z");
    world.settled(&user).await;
    assert_eq!(user.dates(&sound).await, ["2026-11-21"]);
    let error = user.get(&lost).await["meta"]["last_error"].clone();
    assert!(error.as_str().unwrap().contains("client_id"), "{error}");
    assert_eq!(user.api.get("/v1/invoices").await.at("/meta/total"), 1, "nothing is left of the attempt");

    let show = "update relations.relation set role = 'client' where id = $1::uuid";
    sqlx::query(show).bind(client).execute(&mut connection).await.unwrap();
    world.move_to("2026-11-21T18:00:00Z");
    world.settled(&user).await;
    assert_eq!(user.dates(&lost).await, ["2026-11-20"], "still dated when it was due");
    assert_eq!(user.get(&lost).await["meta"]["last_error"], Value::Null);
}

#[tokio::test]
async fn a_credit_of_its_invoice_is_not_one_of_its_invoices() {
    let world = World::working(1).await;
    let user = world.user().await;
    let created = user.hosting(json!({"subscription_start": "2026-11-15"})).await;
    world.settled(&user).await;
    let invoices = user.invoices(&created).await;
    let path = format!("/v1/invoices/{}/credit", id(&invoices[0]));
    let credit = user.api.post(&path, json!({})).await.expect(201).at("/data");
    assert_eq!((&credit["meta"]["subscription_id"], &credit["meta"]["period"]), (&Value::Null, &Value::Null));
    assert_eq!(user.dates(&created).await, ["2026-11-15"]);
}
