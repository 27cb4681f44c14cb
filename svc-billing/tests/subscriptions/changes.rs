use chassis_testing::expected_faults;
use chrono::NaiveDate;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{World, conflict, id, path};

#[tokio::test]
async fn a_patch_that_changes_nothing_writes_nothing() {
    let world = World::new().await;
    let user = world.user().await;
    let created = user.hosting(json!({})).await;
    world.move_to("2026-11-16T09:00:00Z");
    let same =
        json!({"title": "Hosting", "lines": [{"title": "Server", "unit_price": 10, "vat_code": "VAT0"}]});
    for body in [json!({}), json!({"colour": "red"}), same] {
        assert_eq!(user.patch(&created, body).await.expect(200).at("/data"), created);
    }
    let renamed = user.patch(&created, json!({"title": "Mail"})).await.expect(200).at("/data");
    assert_eq!((&renamed["title"], &renamed["next_generate"]), (&json!("Mail"), &json!("2026-11-30")));
    assert_eq!(renamed["meta"]["updated_at"], "2026-11-16T09:00:00.000Z");
}

#[tokio::test]
async fn lines_are_replaced_as_a_whole() {
    let world = World::new().await;
    let user = world.user().await;
    let created = user.hosting(json!({})).await;
    let lines = json!([{"title": "A", "unit_price": 1}, {"title": "B", "unit_price": 2}]);
    let changed = user.patch(&created, json!({"lines": lines})).await.expect(200).at("/data");
    assert_eq!((&changed["subtotal"], &changed["vat_amount"]), (&json!(3.00), &json!(0.63)));
    let full = user.get(&created).await;
    let titles: Vec<&Value> = full["lines"].as_array().unwrap().iter().map(|line| &line["title"]).collect();
    assert_eq!(titles, ["A", "B"]);
    let answer = user.patch(&created, json!({"lines": []})).await.expect(422);
    assert_eq!(answer.faults(), expected_faults(&[("/lines", "required")]));
    let answer = user.patch(&created, json!({"lines": [{"unit_price": 1}]})).await.expect(422);
    assert_eq!(answer.faults(), expected_faults(&[("/lines/0/title", "required")]));
}

#[tokio::test]
async fn a_changed_schedule_has_another_next_date() {
    let world = World::new().await;
    let user = world.user().await;
    let created = user.hosting(json!({"subscription_start": "2026-11-20"})).await;
    assert_eq!(created["next_generate"], "2026-11-20");
    let next = async |body: Value| user.patch(&created, body).await.expect(200).at("/data/next_generate");
    assert_eq!(next(json!({"day_of_month": 31})).await, "2026-11-30");
    assert_eq!(next(json!({"day_of_month": null})).await, "2026-11-20");
    assert_eq!(next(json!({"frequency": "weekly", "day_of_week": 1})).await, "2026-11-23");
    assert_eq!(next(json!({"day_of_week": null, "subscription_start": "2026-12-01"})).await, "2026-12-01");
    assert_eq!(next(json!({"subscription_end": "2026-12-05"})).await, "2026-12-01");
    assert_eq!(next(json!({"subscription_start": "2026-11-20"})).await, "2026-11-20");
    let ended = json!({"subscription_start": "2026-10-01", "subscription_end": "2026-10-31"});
    assert_eq!(next(ended).await, Value::Null);
    assert_eq!(next(json!({"subscription_end": null})).await, "2026-11-19");
}

#[tokio::test]
async fn an_invalid_change_is_reported_at_the_field_that_was_sent() {
    let world = World::new().await;
    let user = world.user().await;
    let created = user.hosting(json!({"day_of_month": 3, "subscription_end": "2027-01-31"})).await;
    for (body, place, code) in [
        (json!({"title": null}), "/title", "required"),
        (json!({"frequency": null}), "/frequency", "not_nullable"),
        (json!({"frequency": "weekly"}), "/frequency", "conflicting"),
        (json!({"day_of_week": 3}), "/day_of_week", "conflicting"),
        (json!({"subscription_start": null}), "/subscription_start", "not_nullable"),
        (json!({"subscription_start": "2027-02-01"}), "/subscription_start", "conflicting"),
        (json!({"subscription_end": "2026-11-29"}), "/subscription_end", "conflicting"),
    ] {
        let answer = user.patch(&created, body).await.expect(422);
        assert_eq!(answer.faults(), expected_faults(&[(place, code)]));
    }
    assert_eq!(user.get(&created).await["meta"]["updated_at"], created["meta"]["updated_at"]);
    let unknown = format!("/v1/subscriptions/{}", world.clock.id());
    user.api.patch(&unknown, json!({"title": "x"})).await.expect(404);
    user.api.patch("/v1/subscriptions/x", json!({"title": "x"})).await.expect(404);
    user.api.patch("/v1/subscriptions/x", json!({"title": ""})).await.expect(422);
}

#[tokio::test]
async fn a_draft_can_lose_its_start_and_its_lines() {
    let world = World::new().await;
    let user = world.user().await;
    let draft = user.create(json!({"subscription_start": "2026-11-30", "lines": [{"title": "A"}]})).await;
    let body = json!({"subscription_start": null, "lines": []});
    let changed = user.patch(&draft, body).await.expect(200).at("/data");
    assert_eq!((&changed["start_date"], &changed["status"]), (&json!(""), &json!("draft")));
    assert_eq!(user.get(&draft).await["lines"], json!([]));
}

#[tokio::test]
async fn an_ended_subscription_can_only_end_sooner() {
    let world = World::new().await;
    let user = world.user().await;
    let created = user.hosting(json!({"subscription_start": "2026-11-01", "day_of_month": 30})).await;
    let end = json!({"subscription_end": "2027-03-31"});
    user.act(&created, "deactivate", end.clone()).await.expect(200);
    for body in [
        json!({"frequency": "yearly"}),
        json!({"subscription_end": "2027-04-01"}),
        json!({"subscription_end": null}),
        json!({"subscription_end": "2027-01-31", "day_of_month": 1}),
    ] {
        assert_eq!(conflict(user.patch(&created, body).await), "ended");
    }
    user.patch(&created, json!({"title": "Mail", "subscription_end": "2027-03-31"})).await.expect(200);
    let sooner = json!({"subscription_end": "2026-11-29"});
    let changed = user.patch(&created, sooner).await.expect(200).at("/data");
    assert_eq!((&changed["end_date"], &changed["next_generate"]), (&json!("2026-11-29"), &Value::Null));
    assert_eq!(changed["status"], "ended");
    assert_eq!(user.api.get(&path(&created)).await.at("/data/title"), "Mail");
}

#[tokio::test]
async fn a_changed_schedule_bills_no_day_twice_and_reports_unbilled_days() {
    let world = World::working(1).await;
    let user = world.user().await;
    let mut told = Vec::new();
    for (terms, change, next, unbilled) in [
        (json!({}), json!({"day_of_month": 1}), "2027-01-01", 17),
        (json!({}), json!({"day_of_month": 20}), "2026-12-20", 5),
        (json!({}), json!({"frequency": "weekly"}), "2026-12-20", 5),
        (json!({}), json!({"frequency": "quarterly"}), "2026-12-15", 0),
        (json!({}), json!({"subscription_start": "2026-12-01"}), "2027-01-01", 17),
        (json!({"frequency": "weekly"}), json!({"day_of_week": 1}), "2026-11-23", 1),
        (json!({"frequency": "weekly"}), json!({"frequency": "monthly"}), "2026-12-15", 23),
        (json!({"frequency": "four_weeks"}), json!({"day_of_week": 6}), "2026-12-19", 6),
    ] {
        let mut body = json!({"subscription_start": "2026-11-15"});
        body.as_object_mut().unwrap().extend(terms.as_object().unwrap().clone());
        let created = user.hosting(body).await;
        assert_eq!(created["meta"]["unbilled_days"], 0);
        world.settled(&user).await;
        let changed = user.patch(&created, change.clone()).await.expect(200).at("/data");
        assert_eq!(changed["next_generate"], next, "{terms} {change}");
        assert_eq!(changed["meta"]["unbilled_days"], unbilled, "{terms} {change}");
        told.push((created, unbilled));
    }
    world.move_to("2027-01-01T09:00:00Z");
    world.settled(&user).await;
    for (subscription, unbilled) in told {
        let id: Uuid = id(&subscription).parse().unwrap();
        let periods: Vec<(NaiveDate, NaiveDate)> = sqlx::query_as(
            "select period_from, period_to from billing.document where subscription_id = $1 order by period_from",
        )
        .bind(id)
        .fetch_all(&mut world.database.connect().await)
        .await
        .unwrap();
        let gaps: Vec<i64> = periods.windows(2).map(|pair| (pair[1].0 - pair[0].1).num_days() - 1).collect();
        let (first, others) = gaps.split_first().unwrap();
        assert!(*first == unbilled && others.iter().all(|gap| *gap == 0), "{periods:?}");
        assert_eq!(user.get(&subscription).await["meta"]["unbilled_days"], 0);
    }
}
