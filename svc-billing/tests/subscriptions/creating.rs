use chassis_testing::expected_faults;
use serde_json::{Value, json};

use crate::support::{World, conflict, id, path};

#[tokio::test]
async fn a_complete_subscription_is_active_and_is_shown_in_full() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Bakery").await;
    let body = json!({
        "client_id": client, "title": " Hosting ", "subscription_start": "2026-01-31",
        "lines": [
            {"title": "Server", "quantity": 2, "unit_price": "12.345", "unit": "month"},
            {"title": "Book", "unit_price": 10, "vat_code": "VAT9", "total_excl_vat": 99},
        ],
    });
    let answer = user.api.post("/v1/subscriptions", body).await.expect(201);
    let created = answer.at("/data");
    assert_eq!(answer.header("location"), Some(path(&created).as_str()));
    let stamp = "2026-11-15T11:00:00.123Z";
    let mut expected = json!({
        "id": created["id"], "number": "S-00001", "title": "Hosting", "client_id": client, "status": "active",
        "term": "monthly", "start_date": "2026-01-31", "end_date": null, "last_generated": null,
        "next_generate": "2026-11-30",
        "schedule": {"schedule_type": "start_date", "day_of_month": null, "day_of_week": null},
        "subtotal": 34.69, "vat_rate": 17.53, "vat_amount": 6.08, "total_excl_vat": 34.69, "total_incl_vat": 40.77,
        "created_at": stamp,
        "meta": {"first_generate_date": null, "last_error": null, "updated_at": stamp, "unbilled_days": 0, "version": 1},
    });
    assert_eq!(created, expected);
    assert_eq!(user.api.get("/v1/subscriptions").await.at("/data/0"), expected, "lists show the same");
    expected["lines"] = json!([
        {"title": "Server", "quantity": 2, "unit_price": 12.345, "unit": "month", "vat_code": "VAT21",
         "total_excl_vat": 24.69, "total_incl_vat": 29.87},
        {"title": "Book", "quantity": 1, "unit_price": 10, "unit": "", "vat_code": "VAT9",
         "total_excl_vat": 10.00, "total_incl_vat": 10.90},
    ]);
    assert_eq!(user.get(&created).await, expected);
}

#[tokio::test]
async fn an_incomplete_subscription_is_a_draft() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Bakery").await;
    let line = json!([{"title": "Server", "unit_price": 10}]);
    for body in [
        json!({}),
        json!({"client_id": client, "lines": line, "title": null}),
        json!({"client_id": client, "subscription_start": "2026-01-01"}),
        json!({"lines": line, "subscription_start": "2026-01-01"}),
    ] {
        let draft = user.create(body.clone()).await;
        assert_eq!(draft["status"], "draft", "{body}");
        assert_eq!(draft["title"], "Subscription");
        assert_eq!(draft["next_generate"], Value::Null);
    }
    let bare = user.create(json!({})).await;
    assert_eq!((&bare["client_id"], &bare["start_date"]), (&json!(""), &json!("")));
    assert_eq!(bare["total_incl_vat"], json!(0.00));
}

#[tokio::test]
async fn a_draft_starts_when_it_is_activated() {
    let world = World::new().await;
    let user = world.user().await;
    let draft = user.hosting(json!({"subscription_start": null})).await;
    let active = user.act(&draft, "activate", json!({})).await.expect(200).at("/data");
    let shown = ["status", "start_date", "next_generate"].map(|name| active[name].clone());
    assert_eq!(shown, ["active", "2026-11-15", "2026-11-15"]);
    assert_eq!(user.act(&active, "activate", json!({})).await.expect(200).at("/data"), active);

    let past = user.hosting(json!({"lines": [], "subscription_start": "2024-02-29"})).await;
    assert_eq!(conflict(user.act(&past, "activate", json!({})).await), "incomplete");
    user.patch(&past, json!({"lines": [{"title": "Server"}]})).await.expect(200);
    let active = user.act(&past, "activate", json!({})).await.expect(200).at("/data");
    assert_eq!(active["next_generate"], "2026-11-29", "nothing for the past");

    let nobodys = user.create(json!({"lines": [{"title": "Server"}]})).await;
    assert_eq!(conflict(user.act(&nobodys, "activate", json!({})).await), "incomplete");
    user.act(&active, "deactivate", json!({})).await.expect(200);
    assert_eq!(conflict(user.act(&active, "activate", json!({})).await), "ended");
}

#[tokio::test]
async fn every_fault_is_reported_with_its_field() {
    let world = World::new().await;
    let user = world.user().await;
    let answer = user
        .api
        .post(
            "/v1/subscriptions",
            json!({
                "client_id": "nobody", "frequency": "daily", "subscription_start": "2026-02-30",
                "day_of_month": 32, "day_of_week": 0,
                "lines": [{"title": " "}, {"title": "A", "quantity": "x", "vat_code": "NONE"}],
            }),
        )
        .await
        .expect(422);
    let mut faults = answer.faults();
    faults.sort();
    assert_eq!(
        faults,
        expected_faults(&[
            ("/client_id", "unknown_reference"),
            ("/day_of_month", "out_of_range"),
            ("/day_of_week", "out_of_range"),
            ("/frequency", "not_allowed"),
            ("/lines/0/title", "required"),
            ("/lines/1/quantity", "not_a_number"),
            ("/lines/1/vat_code", "unknown_reference"),
            ("/subscription_start", "not_a_date"),
        ])
    );
}

#[tokio::test]
async fn values_that_contradict_each_other_are_refused() {
    let world = World::new().await;
    let user = world.user().await;
    let start = json!("2026-11-01");
    for (body, place) in [
        (json!({"frequency": "weekly", "day_of_month": 3}), "/day_of_month"),
        (json!({"frequency": "four_weeks", "day_of_month": 3}), "/day_of_month"),
        (json!({"day_of_week": 3}), "/day_of_week"),
        (json!({"frequency": "yearly", "day_of_week": 3}), "/day_of_week"),
        (json!({"subscription_start": start, "subscription_end": "2026-10-31"}), "/subscription_end"),
        (json!({"subscription_start": start, "first_generate_date": "2026-10-31"}), "/first_generate_date"),
        (
            json!({"subscription_end": "2026-12-01", "first_generate_date": "2026-12-02"}),
            "/first_generate_date",
        ),
    ] {
        let answer = user.api.post("/v1/subscriptions", body).await.expect(422);
        assert_eq!(answer.faults(), expected_faults(&[(place, "conflicting")]));
    }
    let ancient = json!({"first_generate_date": "2016-11-14"});
    let answer = user.api.post("/v1/subscriptions", ancient).await.expect(422);
    assert_eq!(answer.faults(), expected_faults(&[("/first_generate_date", "out_of_range")]));
    user.create(json!({"subscription_start": start, "subscription_end": start})).await;
}

#[tokio::test]
async fn a_client_can_be_named_by_the_callers_own_reference() {
    let world = World::new().await;
    let user = world.user().await;
    let client = json!({"company_name": "Bakery", "external_id": "crm-1"});
    let client = user.api.post("/v1/clients", client).await.expect(201).at("/data/id");
    let created = user.create(json!({"client_external_id": "crm-1"})).await;
    assert_eq!(created["client_id"], client);
    let unknown = json!({"client_external_id": "crm-2"});
    let answer = user.api.post("/v1/subscriptions", unknown).await.expect(422);
    assert_eq!(answer.faults(), expected_faults(&[("/client_external_id", "unknown_reference")]));
}

#[tokio::test]
async fn the_chosen_days_are_stored_and_shown() {
    let world = World::new().await;
    let user = world.user().await;
    let monthly = user.hosting(json!({"subscription_start": "2026-11-01", "day_of_month": 31})).await;
    assert_eq!(
        monthly["schedule"],
        json!({"schedule_type": "day_of_month", "day_of_month": 31, "day_of_week": null})
    );
    assert_eq!(monthly["next_generate"], "2026-11-30");
    let weekly = json!({"subscription_start": "2026-11-01", "frequency": "four_weeks", "day_of_week": 1});
    let weekly = user.hosting(weekly).await;
    assert_eq!(
        weekly["schedule"],
        json!({"schedule_type": "start_date", "day_of_month": null, "day_of_week": 1})
    );
    assert_eq!(weekly["next_generate"], "2026-11-30", "the first Monday was the 2nd, and then 4 weeks");
}

#[tokio::test]
async fn a_line_with_only_a_total_gets_its_price_from_it() {
    let world = World::new().await;
    let user = world.user().await;
    let lines = json!([
        {"title": "A", "quantity": 4, "total_excl_vat": 10}, {"title": "B", "total_incl_vat": 121},
        {"title": "C", "quantity": 0, "total_excl_vat": 10},
    ]);
    let created = user.hosting(json!({"lines": lines})).await;
    let lines = user.get(&created).await["lines"].clone();
    let prices: Vec<Value> =
        lines.as_array().unwrap().iter().map(|line| line["unit_price"].clone()).collect();
    assert_eq!(prices, [json!(2.5), json!(100), json!(0)]);
    assert_eq!(created["total_incl_vat"], json!(133.10));
}

#[tokio::test]
async fn a_repeated_create_returns_the_first_answer() {
    let world = World::new().await;
    let user = world.user().await;
    let body = json!({"title": "Hosting"});
    let first = user.api.post_keyed("/v1/subscriptions", "k", body.clone()).await.expect(201);
    let again = user.api.post_keyed("/v1/subscriptions", "k", body).await.expect(201);
    assert_eq!((again.header("x-idempotent-replay"), &again.body), (Some("true"), &first.body));
    assert_eq!(user.api.get("/v1/subscriptions").await.at("/meta/total"), 1);
    let other = json!({"title": "Other"});
    user.api.post_keyed("/v1/subscriptions", "k", other).await.expect(422);
    assert_eq!(user.create(json!({})).await["number"], "S-00002", "numbers have no gaps");
    let other = world.user().await;
    assert_eq!(other.create(json!({})).await["number"], "S-00001", "each account has its own");
    assert_ne!(id(&other.create(json!({})).await), "");
}
