//! What is told of clients and deals that nobody looks after.

use chassis::testing::{Started, look_through, set_threshold};
use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::support::{User, World, id};

const MOMENT: TimeDelta = TimeDelta::milliseconds(1);
const CLIENT: &str = "customer.no_followup";
const DEAL: &str = "deal.no_followup";

fn days(days: i64) -> TimeDelta {
    TimeDelta::days(days)
}

/// What the account was told and has not looked at yet.
async fn told(world: &World, user: &User) -> Vec<(String, Value)> {
    sqlx::query_as(
        "with gone as (delete from work.outbox where account_id = $1 returning *)
         select type, data::json from gone order by occurred_at, id",
    )
    .bind(user.account.id)
    .fetch_all(&mut world.database.connect().await)
    .await
    .unwrap()
}

/// Lets time pass, and tells what the account hears then.
async fn after(world: &World, work: &Started, user: &User, time: TimeDelta) -> Vec<String> {
    world.clock.advance(time);
    look_through(work, &user.token).await;
    told(world, user).await.into_iter().map(|(name, _)| name).collect()
}

#[tokio::test]
async fn a_client_that_nobody_looks_after_is_told_of_once_for_each_silence() {
    let world = World::new().await;
    let (user, work) = (world.user().await, world.scanning().await);
    let client = user.client("Mill").await;
    let after = async |time| after(&world, &work, &user, time).await;

    assert_eq!(after(days(90) - MOMENT).await, [""; 0]);
    world.clock.advance(MOMENT);
    look_through(&work, &user.token).await;
    let expected = json!({
        "id": client, "type": "company", "company_name": "Mill", "firstname": "", "lastname": "", "email": "",
        "external_id": null, "debtor_number": "D-00001", "days": 90,
    });
    assert_eq!(told(&world, &user).await, [(CLIENT.to_owned(), expected)]);
    assert_eq!(after(days(90)).await, [""; 0], "once");

    user.create("notes", json!({"body": "Called", "client_id": client})).await;
    assert_eq!(after(days(90) - MOMENT).await, [""; 0]);
    assert_eq!(after(MOMENT).await, [CLIENT], "another silence");
    let task = user.create("tasks", json!({"title": "Call", "client_id": client})).await;
    assert_eq!(after(days(200)).await, [""; 0], "there is something to do");
    user.api.post(&format!("/v1/tasks/{}/complete", id(&task)), json!({})).await.expect(200);
    assert_eq!(after(days(90) - MOMENT).await, [""; 0], "it was done just now");
    assert_eq!(after(MOMENT).await, [CLIENT]);
}

#[tokio::test]
async fn an_open_deal_without_an_open_task_is_told_of_once_for_each_time_without_one() {
    let world = World::new().await;
    let (user, work) = (world.user().await, world.scanning().await);
    let client = user.client("Mill").await;
    let body = json!({"title": "Ovens", "client_id": client, "amount": "12.50", "expected_close_date": "2026-12-01"});
    let deal = user.create("deals", body).await;
    let after = async |time| after(&world, &work, &user, time).await;

    assert_eq!(after(days(7) - MOMENT).await, [""; 0]);
    world.clock.advance(MOMENT);
    look_through(&work, &user.token).await;
    let expected = json!({
        "id": deal["id"], "title": "Ovens", "amount": 12.5, "status": "open", "priority": "medium",
        "pipeline_id": deal["pipeline_id"], "phase_id": deal["phase_id"], "client_id": client,
        "expected_close_date": "2026-12-01", "source": null, "days": 7,
    });
    assert_eq!(told(&world, &user).await, [(DEAL.to_owned(), expected)]);
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
async fn nothing_is_told_of_deals_that_are_won_or_gone_and_what_was_told_of_them_is_forgotten() {
    let world = World::new().await;
    let (user, work) = (world.user().await, world.scanning().await);
    let client = user.client("Mill").await;
    let deal = async |title: &str| user.create("deals", json!({"title": title, "client_id": client})).await;
    let [before, won, gone] = [deal("Before").await, deal("Won").await, deal("Gone").await];
    let win = async |deal: &Value| {
        user.api.post(&format!("/v1/deals/{}/win", id(deal)), json!({})).await.expect(200)
    };
    let remembered = async || -> i64 {
        sqlx::query_scalar("select count(*) from work.scan_told where account_id = $1")
            .bind(user.account.id)
            .fetch_one(&mut world.database.connect().await)
            .await
            .unwrap()
    };
    win(&before).await;
    assert_eq!(after(&world, &work, &user, days(7)).await, [DEAL, DEAL]);
    assert_eq!(remembered().await, 2);
    win(&won).await;
    user.delete(&format!("/v1/deals/{}", id(&gone))).await.expect(200);
    assert_eq!(after(&world, &work, &user, days(7)).await, [""; 0]);
    assert_eq!(remembered().await, 0);
}

#[tokio::test]
async fn a_service_that_is_away_holds_up_only_what_it_is_asked_for() {
    let world = World::new().await;
    let user = world.user().await;
    let client = user.client("Mill").await;
    user.create("deals", json!({"title": "Ovens", "client_id": client})).await;
    let mut alone = world.scanning_with("http://127.0.0.1:1").await;
    assert_eq!(after(&world, &alone, &user, days(90)).await, [CLIENT]);
    alone.stop_working().await;
    let work = world.scanning().await;
    assert_eq!(after(&world, &work, &user, TimeDelta::minutes(5)).await, [DEAL]);
}

#[tokio::test]
async fn each_account_has_its_own_thresholds_and_hears_of_its_own_clients() {
    let world = World::new().await;
    let (user, other, work) = (world.user().await, world.user().await, world.scanning().await);
    for user in [&user, &other] {
        user.client("Mill").await;
    }
    set_threshold(&work, &user.token, CLIENT, Some(30)).await;
    assert_eq!(after(&world, &work, &user, days(30)).await, [CLIENT]);
    assert_eq!(after(&world, &work, &other, days(59)).await, [""; 0]);
    assert_eq!(after(&world, &work, &other, days(1)).await, [CLIENT]);
    set_threshold(&work, &user.token, CLIENT, None).await;
    assert_eq!(after(&world, &work, &user, days(90)).await, [""; 0], "told before");
}

#[tokio::test]
async fn all_clients_are_gone_through_however_many_there_are() {
    let world = World::new().await;
    let (user, work) = (world.user().await, world.scanning().await);
    let client = user.client("Mill").await;
    // More than one answer of the other service has. Made in the database: one by one they would take long.
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
    look_through(&work, &user.token).await;
    let events = told(&world, &user).await;
    let ids: std::collections::BTreeSet<String> =
        events.iter().map(|(_, data)| data["id"].to_string()).collect();
    assert_eq!((events.len(), ids.len()), (1101, 1101));
    assert_eq!(after(&world, &work, &user, days(1)).await, [""; 0]);
}
