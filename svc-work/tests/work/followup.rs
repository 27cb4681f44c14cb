//! The events about clients and deals without a follow-up.

use chassis_testing::{Started, run_scans, set_threshold};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::support::{User, id};
use crate::world::World;

const MOMENT: TimeDelta = TimeDelta::milliseconds(1);
const CLIENT: &str = "customer.no_followup";
const DEAL: &str = "deal.no_followup";

fn days(days: i64) -> TimeDelta {
    TimeDelta::days(days)
}

/// Takes the events of the account from the log, in the order in which they happened.
async fn take_events(world: &World, user: &User) -> Vec<(String, Value)> {
    sqlx::query_as(
        "with removed as (select * from work.log where account_id = $1 and event is not null),
            forgotten as (update work.log set event = null where account_id = $1)
         select event, data::json from removed order by id",
    )
    .bind(user.account.id)
    .fetch_all(&mut world.database.connect().await)
    .await
    .unwrap()
}

/// Advances the clock, runs the scans, and returns the names of the events they emitted.
async fn after(world: &World, work: &Started, user: &User, time: TimeDelta) -> Vec<String> {
    world.clock.advance(time);
    run_scans(work, &user.token).await;
    take_events(world, user).await.into_iter().map(|(name, _)| name).collect()
}

#[tokio::test]
async fn a_client_without_a_follow_up_emits_one_event_for_each_time_without_one() {
    let world = World::start().with_crm().await;
    let (user, work) = (world.user().await, world.start_scans().await);
    let client = user.client("Mill").await;
    let after = async |time| after(&world, &work, &user, time).await;

    assert_eq!(after(days(90) - MOMENT).await, [""; 0]);
    world.clock.advance(MOMENT);
    run_scans(&work, &user.token).await;
    let expected = json!({
        "id": client, "type": "company", "company_name": "Mill", "firstname": "", "lastname": "", "email": "",
        "external_id": null, "debtor_number": "D-00001", "days": 90,
    });
    assert_eq!(take_events(&world, &user).await, [(CLIENT.to_owned(), expected)]);
    assert_eq!(after(days(90)).await, [""; 0], "once");

    user.create("notes", json!({"body": "Called", "client_id": client})).await;
    assert_eq!(after(days(90) - MOMENT).await, [""; 0]);
    assert_eq!(after(MOMENT).await, [CLIENT], "another time without a follow-up");
    let task = user.create("tasks", json!({"title": "Call", "client_id": client})).await;
    assert_eq!(after(days(200)).await, [""; 0], "there is something to do");
    user.api.post(&format!("/v1/tasks/{}/complete", id(&task)), json!({})).await.expect(200);
    assert_eq!(after(days(90) - MOMENT).await, [""; 0], "it was done just now");
    assert_eq!(after(MOMENT).await, [CLIENT]);
}

#[tokio::test]
async fn an_open_deal_without_an_open_task_emits_one_event_for_each_time_without_one() {
    let world = World::start().with_crm().await;
    let (user, work) = (world.user().await, world.start_scans().await);
    let client = user.client("Mill").await;
    let body = json!({"title": "Ovens", "client_id": client, "amount": "12.50", "expected_close_date": "2026-12-01"});
    let deal = user.create("deals", body).await;
    let after = async |time| after(&world, &work, &user, time).await;

    assert_eq!(after(days(7) - MOMENT).await, [""; 0]);
    world.clock.advance(MOMENT);
    run_scans(&work, &user.token).await;
    let expected = json!({
        "id": deal["id"], "title": "Ovens", "amount": 12.5, "status": "open", "priority": "medium",
        "pipeline_id": deal["pipeline_id"], "phase_id": deal["phase_id"], "client_id": client,
        "expected_close_date": "2026-12-01", "source": null, "days": 7,
    });
    assert_eq!(take_events(&world, &user).await, [(DEAL.to_owned(), expected)]);
    assert_eq!(after(days(7)).await, [""; 0], "once");

    let task = user.create("tasks", json!({"title": "Call", "deal_id": deal["id"]})).await;
    assert_eq!(after(days(9)).await, [""; 0], "there is something to do");
    let act = async |action: &str| {
        user.api.post(&format!("/v1/tasks/{}/{action}", id(&task)), json!({})).await.expect(200)
    };
    act("complete").await;
    assert_eq!(after(days(6)).await, [""; 0]);
    act("reopen").await;
    assert_eq!(after(days(6)).await, [""; 0]);
    act("complete").await;
    assert_eq!(after(days(7) - MOMENT).await, [""; 0]);
    assert_eq!(after(MOMENT).await, [DEAL]);
}

#[tokio::test]
async fn deals_that_are_won_or_deleted_emit_nothing_and_their_causes_are_removed() {
    let world = World::start().with_crm().await;
    let (user, work) = (world.user().await, world.start_scans().await);
    let client = user.client("Mill").await;
    let deal = async |title: &str| user.create("deals", json!({"title": title, "client_id": client})).await;
    let [before, won, gone] = [deal("Before").await, deal("Won").await, deal("Gone").await];
    let win = async |deal: &Value| {
        user.api.post(&format!("/v1/deals/{}/win", id(deal)), json!({})).await.expect(200)
    };
    let stored_causes = async || -> i64 {
        sqlx::query_scalar("select count(*) from work.scan_told where account_id = $1")
            .bind(user.account.id)
            .fetch_one(&mut world.database.connect().await)
            .await
            .unwrap()
    };
    win(&before).await;
    assert_eq!(after(&world, &work, &user, days(7)).await, [DEAL, DEAL]);
    assert_eq!(stored_causes().await, 2);
    win(&won).await;
    user.delete(&format!("/v1/deals/{}", id(&gone))).await.expect(200);
    assert_eq!(after(&world, &work, &user, days(7)).await, [""; 0]);
    assert_eq!(stored_causes().await, 0);
}

#[tokio::test]
async fn a_service_that_cannot_be_reached_delays_only_its_own_scan() {
    let world = World::start().with_crm().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    user.create("deals", json!({"title": "Ovens", "client_id": client})).await;
    let mut without_crm = world.start_scans_with("http://127.0.0.1:1").await;
    assert_eq!(after(&world, &without_crm, &user, days(90)).await, [CLIENT]);
    without_crm.stop_working().await;
    let work = world.start_scans().await;
    assert_eq!(after(&world, &work, &user, TimeDelta::minutes(5)).await, [DEAL]);
}

#[tokio::test]
async fn an_account_is_left_alone_for_most_of_a_day_unless_it_has_an_open_deal() {
    let world = World::start().with_crm().await;
    let (user, work) = (world.user().await, world.start_scans().await);
    let client = user.client("Mill").await;
    let quiet = async || -> Option<TimeDelta> {
        run_scans(&work, &user.token).await;
        let sql = "select quiet_until from work.scan_turn where account_id = $1";
        let until: Option<DateTime<Utc>> = sqlx::query_scalar(sql)
            .bind(user.account.id)
            .fetch_one(&mut world.database.connect().await)
            .await
            .unwrap();
        Some(until? - world.clock.now())
    };
    let most_of_a_day = TimeDelta::hours(12)..=days(1);
    assert!(quiet().await.is_some_and(|time| most_of_a_day.contains(&time)), "a client is new");
    world.clock.advance(days(89) + TimeDelta::hours(12));
    assert_eq!(quiet().await, None, "a client has had no follow-up for almost 90 days");
    world.clock.advance(days(1));
    quiet().await;
    assert!(quiet().await.is_some_and(|time| most_of_a_day.contains(&time)), "that was told");
    user.create("deals", json!({"title": "Ovens", "client_id": client})).await;
    assert_eq!(quiet().await, None, "deals are closed and opened again without work being told");
}

#[tokio::test]
async fn each_account_has_its_own_thresholds_and_events_of_its_own_clients() {
    let world = World::start().with_crm().await;
    let (user, other, work) = (world.user().await, world.user().await, world.start_scans().await);
    for user in [&user, &other] {
        user.client("Mill").await;
    }
    set_threshold(&work, &user.token, CLIENT, Some(30)).await;
    assert_eq!(after(&world, &work, &user, days(30)).await, [CLIENT]);
    assert_eq!(after(&world, &work, &other, days(59)).await, [""; 0]);
    assert_eq!(after(&world, &work, &other, days(1)).await, [CLIENT]);
    set_threshold(&work, &user.token, CLIENT, None).await;
    assert_eq!(after(&world, &work, &user, days(90)).await, [""; 0], "emitted before");
}

#[tokio::test]
async fn all_clients_are_scanned_when_there_are_more_than_one_page() {
    let world = World::start().with_crm().await;
    let (user, work) = (world.user().await, world.start_scans().await);
    let client = user.client("Mill").await;
    // More than one page of relations. Inserted by SQL, because one request for each takes long.
    sqlx::query(
        "insert into relations.relation
         select (jsonb_populate_record(relation, jsonb_build_object('id', gen_random_uuid()))).*
         from relations.relation, generate_series(1, 1100) where account_id = $1 and id = $2::uuid",
    )
    .bind(user.account.id)
    .bind(&client)
    .execute(&mut world.database.connect().await)
    .await
    .unwrap();
    world.clock.advance(days(90));
    run_scans(&work, &user.token).await;
    let events = take_events(&world, &user).await;
    let ids: std::collections::BTreeSet<String> =
        events.iter().map(|(_, data)| data["id"].to_string()).collect();
    assert_eq!((events.len(), ids.len()), (1101, 1101));
    assert_eq!(after(&world, &work, &user, days(1)).await, [""; 0]);
}
