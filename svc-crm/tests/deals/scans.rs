//! The events that deals emit because time passes.

use chassis_testing::{Started, run_scans, set_threshold};
use chrono::TimeDelta;
use proto::crm::BatchGetDealsRequest;
use proto::crm::deal_service_client::DealServiceClient;
use proto::scans::ListThresholdsRequest;
use proto::scans::scan_service_client::ScanServiceClient;
use serde_json::json;
use uuid::Uuid;

use crate::support::{User, World, id, phase};

const MOMENT: TimeDelta = TimeDelta::milliseconds(1);

/// Advances the clock, runs the scans, and returns the names of the events they emitted.
async fn after(world: &World, crm: &Started, user: &User, time: TimeDelta) -> Vec<String> {
    world.clock.advance(time);
    run_scans(crm, user.caller()).await;
    let mut names = user.take_event_names(world).await;
    names.sort();
    names
}

#[tokio::test]
async fn an_open_deal_emits_one_event_for_each_time_without_a_change_and_each_time_in_a_phase() {
    let world = World::new().await;
    let (user, crm) = (world.user().await, world.start_worker().await);
    let client = user.client("Mill").await;
    let body = json!({"title": "Ovens", "client_id": client, "amount": "12.50", "source": "Website"});
    let deal = user.deal(body).await;
    let board = user.board().await;
    let after = async |time| after(&world, &crm, &user, time).await;

    let week = TimeDelta::days(7);
    assert_eq!(after(week - MOMENT).await, ["deal.created"]);
    assert_eq!(after(MOMENT).await, ["deal.phase_idle"]);
    assert_eq!(after(week - MOMENT).await, [""; 0], "once");
    world.clock.advance(MOMENT);
    run_scans(&crm, user.caller()).await;
    let events = user.take_events(&world).await;
    let expected = json!({
        "id": deal["id"], "title": "Ovens", "amount": 12.5, "status": "open", "priority": "medium",
        "pipeline_id": deal["pipeline_id"], "phase_id": deal["phase_id"], "client_id": client,
        "expected_close_date": null, "source": "Website", "days": 14,
    });
    assert_eq!(events, [("deal.stalled".to_owned(), expected)]);
    assert_eq!(after(week).await, [""; 0], "once");

    user.patch(&deal, json!({"title": "Mills"})).await.expect(200);
    assert_eq!(after(week * 2 - MOMENT).await, [""; 0]);
    assert_eq!(after(MOMENT).await, ["deal.stalled"], "a new silence in the same phase");

    user.act(&deal, "move", json!({"phase_id": phase(&board[0], 1)})).await.expect(200);
    assert_eq!(after(week).await, ["deal.phase_changed", "deal.phase_idle"]);
    assert_eq!(after(week).await, ["deal.stalled"]);
}

#[tokio::test]
async fn an_event_of_time_changes_no_deal_and_comes_after_those_before_it() {
    let world = World::new().await;
    let (user, crm) = (world.user().await, world.start_worker().await);
    let client = user.client("Mill").await;
    let deal = user.titled_deal(&client, "Ovens").await;
    let shown = user.get(&deal).await;
    for days in [7, 7] {
        world.clock.advance(TimeDelta::days(days));
        run_scans(&crm, user.caller()).await;
    }
    assert_eq!(user.get(&deal).await, shown);
    let won = user.act(&deal, "win", json!({})).await.expect(200);
    assert_eq!(won.at("/data/meta/version"), 2);
    user.delete(&deal).await.expect(200);
    let events: Vec<(String, i64)> = sqlx::query_as(
        "select event, sequence / 1000 from crm.log where event is not null and record_id = $1 order by id",
    )
    .bind(id(&deal))
    .fetch_all(&mut world.database.connect().await)
    .await
    .unwrap();
    let expected = [
        ("deal.created", 1),
        ("deal.phase_idle", 2),
        ("deal.stalled", 3),
        ("deal.won", 4),
        ("deal.deleted", 5),
    ];
    assert_eq!(events, expected.map(|(event, version)| (event.to_owned(), version)));
}

#[tokio::test]
async fn an_expected_close_date_emits_one_event_when_it_begins_in_the_time_zone_of_the_account() {
    let world = World::new().await;
    let (user, crm) = (world.user().await, world.start_worker().await);
    let client = user.client("Mill").await;
    let expected = |day: &str| json!({"title": day, "client_id": client, "expected_close_date": day});
    let deal = user.deal(expected("2026-11-16")).await;
    user.deal(expected("2026-11-20")).await;
    user.take_events(&world).await;
    let after = async |time| after(&world, &crm, &user, time).await;

    // It is noon there, an hour ahead of UTC.
    assert_eq!(after(TimeDelta::hours(11)).await, [""; 0]);
    world.clock.advance(TimeDelta::hours(1));
    run_scans(&crm, user.caller()).await;
    let events = user.take_events(&world).await;
    assert_eq!(events.len(), 1, "{events:?}");
    let (name, data) = &events[0];
    assert_eq!((name.as_str(), &data["expected_close_date"]), ("deal.close_due", &json!("2026-11-16")));
    assert_eq!(after(TimeDelta::days(1)).await, [""; 0], "once");

    user.patch(&deal, json!({"expected_close_date": "2026-11-18"})).await.expect(200);
    assert_eq!(after(TimeDelta::zero()).await, [""; 0]);
    assert_eq!(after(TimeDelta::days(1)).await, ["deal.close_due"], "another date");
}

#[tokio::test]
async fn deals_that_are_won_lost_or_deleted_emit_nothing() {
    let world = World::new().await;
    let (user, crm) = (world.user().await, world.start_worker().await);
    let client = user.client("Mill").await;
    let body = json!({"title": "T", "client_id": client, "expected_close_date": "2026-11-16"});
    let [won, lost, gone] =
        [user.deal(body.clone()).await, user.deal(body.clone()).await, user.deal(body).await];
    user.act(&won, "win", json!({})).await.expect(200);
    user.act(&lost, "lose", json!({})).await.expect(200);
    user.delete(&gone).await.expect(200);
    user.take_events(&world).await;
    assert_eq!(after(&world, &crm, &user, TimeDelta::days(30)).await, [""; 0]);
    user.act(&won, "move", json!({"status": "open"})).await.expect(200);
    let events = after(&world, &crm, &user, TimeDelta::zero()).await;
    assert_eq!(events, ["deal.close_due", "deal.phase_idle"], "what is open again counts again");
}

#[tokio::test]
async fn each_account_has_its_own_thresholds_and_events_of_its_own_deals() {
    let world = World::new().await;
    let (user, other, crm) = (world.user().await, world.user().await, world.start_worker().await);
    for user in [&user, &other] {
        user.titled_deal(&user.client("Mill").await, "Ovens").await;
        user.take_events(&world).await;
    }
    set_threshold(&crm, user.caller(), "deal.stalled", Some(2)).await;
    world.clock.advance(TimeDelta::days(2));
    for user in [&user, &other] {
        run_scans(&crm, user.caller()).await;
    }
    let events = user.take_events(&world).await;
    assert_eq!(
        (events.len(), &events[0].0, &events[0].1["days"]),
        (1, &"deal.stalled".to_owned(), &json!(2))
    );
    assert_eq!(other.take_event_names(&world).await, [""; 0]);
    set_threshold(&crm, user.caller(), "deal.stalled", None).await;
    assert_eq!(after(&world, &crm, &user, TimeDelta::days(12)).await, ["deal.phase_idle"], "emitted before");

    let mut client = ScanServiceClient::new(crm.channel());
    let listed = client.list_thresholds(user.request(ListThresholdsRequest {})).await.unwrap().into_inner();
    let shown = |it: &proto::scans::Threshold| (it.event.clone(), it.default_value, it.value);
    let expected = [("deal.stalled", 14), ("deal.phase_idle", 7), ("deal.close_due", 0)];
    let expected = expected.map(|(event, default)| (event.to_owned(), default, None));
    assert_eq!(listed.thresholds.iter().map(shown).collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn two_processes_emit_one_event_of_each_deal() {
    let world = World::new().await;
    let (user, one, other) = (world.user().await, world.start_worker().await, world.start_worker().await);
    let client = user.client("Mill").await;
    for number in 0..10 {
        user.titled_deal(&client, &number.to_string()).await;
    }
    user.take_events(&world).await;
    world.clock.advance(TimeDelta::days(14));
    for crm in [&one, &other, &one] {
        run_scans(crm, user.caller()).await;
    }
    let events = user.take_events(&world).await;
    let of = |name: &str| {
        let ids = events.iter().filter(|(kind, _)| kind == name).map(|(_, data)| data["id"].to_string());
        ids.collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!((events.len(), of("deal.stalled"), of("deal.phase_idle")), (20, 10, 10));
}

#[tokio::test]
async fn several_deals_are_read_by_their_ids() {
    let world = World::new().await;
    let (user, other) = (world.user().await, world.user().await);
    let client = user.client("Mill").await;
    let [mine, second] = [user.titled_deal(&client, "A").await, user.titled_deal(&client, "B").await];
    let theirs = other.titled_deal(&other.client("Farm").await, "C").await;
    let ids = [id(&mine), id(&second), id(&theirs), Uuid::new_v4().to_string(), "x".to_owned()].to_vec();
    let request = user.request(BatchGetDealsRequest { ids });
    let found = DealServiceClient::new(user.channel()).batch_get_deals(request).await.unwrap().into_inner();
    let mut titles: Vec<String> = found.data.into_iter().map(|deal| deal.title).collect();
    titles.sort();
    assert_eq!(titles, ["A", "B"]);
    let many = user.request(BatchGetDealsRequest { ids: vec![String::new(); 501] });
    let refused = DealServiceClient::new(user.channel()).batch_get_deals(many).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
}
