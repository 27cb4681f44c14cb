//! Events caused by the passing of time, on real Postgres with a clock that the test moves: each cause is reported
//! once.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod quiet;
mod world;

use chassis_testing::{TestCaller, eventually};
use chrono::{DateTime, TimeDelta, Utc};
use prost::Message;
use proto::google::rpc;
use proto::scans::{ListThresholdsRequest, RunScansRequest, SetThresholdRequest, ThresholdUnit};
use serde_json::{Value, json};
use tonic::Status;
use uuid::Uuid;
use world::World;

fn still(thing: Uuid, days: i32) -> (String, Uuid, Value) {
    ("thing.still".to_owned(), thing, json!({"days": days}))
}

#[tokio::test]
async fn a_cause_is_told_once_when_its_time_has_come_and_a_new_one_again() {
    let world = World::new(1).await;
    let caller = world.account().await;
    let thing = world.add(&caller, "still", world.clock.now()).await;
    world.clock.advance(TimeDelta::days(3) - TimeDelta::milliseconds(1));
    world.looked(&caller).await;
    assert_eq!(world.events(&caller).await, []);
    world.clock.advance(TimeDelta::hours(1));
    world.looked(&caller).await;
    assert_eq!(world.events(&caller).await, [still(thing, 3)]);
    for _ in 0..3 {
        world.clock.advance(TimeDelta::days(1));
        world.looked(&caller).await;
    }
    assert_eq!(world.events(&caller).await.len(), 1, "it is the same silence");
    world.set_since(thing, world.clock.now()).await;
    world.clock.advance(TimeDelta::days(3));
    world.looked(&caller).await;
    assert_eq!(world.events(&caller).await, [still(thing, 3), still(thing, 3)]);
}

#[tokio::test]
async fn an_account_is_looked_through_once_an_hour_or_when_someone_asks() {
    let world = World::new(1).await;
    let caller = world.account().await;
    world.looked(&caller).await;
    let long_ago = world.clock.now() - TimeDelta::days(30);
    let thing = world.add(&caller, "still", long_ago).await;
    let next_at: DateTime<Utc> = sqlx::query_scalar("select next_at from bare.scan_turn")
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap();
    assert_eq!(next_at, world.clock.now() + TimeDelta::hours(1));
    world.look(&caller).await;
    assert_eq!(world.events(&caller).await, [still(thing, 3)]);
}

#[tokio::test]
async fn each_account_has_its_own_thresholds_and_hears_of_its_own_things() {
    let world = World::new(1).await;
    let (patient, other, third) = (world.account().await, world.account().await, world.account().await);
    assert_eq!(world.set(&patient, "thing.still", Some(10)).await.unwrap(), Some(10));
    let theirs = world.add(&patient, "still", world.clock.now()).await;
    let others = world.add(&other, "still", world.clock.now()).await;
    world.clock.advance(TimeDelta::days(9));
    for caller in [&patient, &other, &third] {
        world.looked(caller).await;
    }
    assert_eq!(world.events(&patient).await, []);
    assert_eq!(world.events(&other).await, [still(others, 3)]);
    assert_eq!(world.events(&third).await, []);
    world.clock.advance(TimeDelta::days(1));
    world.looked(&patient).await;
    assert_eq!(world.events(&patient).await, [still(theirs, 10)]);
    // A shorter threshold applies immediately and reports nothing twice.
    let young = world.add(&patient, "still", world.clock.now() - TimeDelta::days(4)).await;
    assert_eq!(world.set(&patient, "thing.still", None).await.unwrap(), None);
    world.looked(&patient).await;
    assert_eq!(world.events(&patient).await, [still(theirs, 10), still(young, 3)]);
    world.set(&patient, "thing.still", Some(100)).await.unwrap();
    world.looked(&patient).await;
    world.set(&patient, "thing.still", Some(1)).await.unwrap();
    world.looked(&patient).await;
    assert_eq!(world.events(&patient).await.len(), 2, "what was told stays told, whatever the threshold");
}

#[tokio::test]
async fn thresholds_are_listed_with_their_units_and_wrong_ones_are_refused() {
    let world = World::new(1).await;
    let (caller, other) = (world.account().await, world.account().await);
    world.set(&caller, "thing.alone", Some(5)).await.unwrap();
    let listed = async |caller: &TestCaller| {
        let answer = world.scans().list_thresholds(caller.request(ListThresholdsRequest {})).await.unwrap();
        let thresholds = answer.into_inner().thresholds.into_iter();
        thresholds.map(|it| (it.event.clone(), it.unit(), it.default_value, it.value)).collect::<Vec<_>>()
    };
    let expected = |alone| {
        [
            ("thing.alone".to_owned(), ThresholdUnit::Hours, 2, alone),
            ("thing.still".to_owned(), ThresholdUnit::Days, 3, None),
            ("thing.dated".to_owned(), ThresholdUnit::Unspecified, 0, None),
            ("thing.ending".to_owned(), ThresholdUnit::Days, 1, None),
        ]
    };
    assert_eq!(listed(&caller).await, expected(Some(5)));
    assert_eq!(listed(&other).await, expected(None));
    for (event, value, place) in [
        ("thing.lost", Some(1), "/event"),
        ("", Some(1), "/event"),
        ("thing.dated", Some(1), "/value"),
        ("thing.still", Some(0), "/value"),
        ("thing.still", Some(-1), "/value"),
        ("thing.still", Some(3651), "/value"),
    ] {
        let refused = world.set(&caller, event, value).await.unwrap_err();
        assert_eq!(places(&refused), [place], "{event} {value:?}");
    }
    assert_eq!(listed(&caller).await, expected(Some(5)));
    let key = TestCaller { scopes: vec!["invoices.write".into()], ..caller };
    let request = key.request(SetThresholdRequest { event: "thing.still".into(), value: Some(1) });
    let refused = world.scans().set_threshold(request).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::PermissionDenied, "a key cannot");
}

/// The fields that have a fault.
fn places(status: &Status) -> Vec<String> {
    let details = rpc::Status::decode(status.details()).unwrap().details;
    let bad = details.iter().filter(|detail| detail.type_url.ends_with("BadRequest"));
    let bad = bad.flat_map(|bad| rpc::BadRequest::decode(bad.value.as_slice()).unwrap().field_violations);
    bad.map(|violation| violation.field).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn several_replicas_tell_more_than_a_page_of_causes_once_each() {
    let mut world = World::new(2).await;
    let mut expected = Vec::new();
    for _ in 0..4 {
        let caller = world.account().await;
        let things = world.add_many(&caller, "still", world.clock.now(), 250).await;
        expected.push((caller, things));
    }
    world.clock.advance(TimeDelta::days(3));
    let mut killed = false;
    for (caller, things) in &expected {
        eventually("everything is told", async || {
            // Leases are shared again as the clock advances.
            world.clock.advance(TimeDelta::milliseconds(200));
            world.events(caller).await.len() >= things.len()
        })
        .await;
        if !killed {
            world.replicas.pop();
            world.add_replica().await;
            world.clock.advance(TimeDelta::seconds(16));
            killed = true;
        }
    }
    for (caller, things) in &expected {
        world.clock.advance(TimeDelta::hours(1));
        world.looked(caller).await;
        let mut told: Vec<Uuid> = world.events(caller).await.into_iter().map(|(_, thing, _)| thing).collect();
        told.sort_unstable();
        assert_eq!(told, *things);
    }
}

#[tokio::test]
async fn two_who_find_the_same_cause_at_the_same_time_tell_it_once() {
    // Leases prevent concurrent scans of an account; this test shows that the result is correct without them.
    let world = World::new(1).await;
    let caller = world.account().await;
    world.looked(&caller).await;
    let thing = world.add(&caller, "still", world.clock.now() - TimeDelta::days(4)).await;
    let mut connection = world.database.connect().await;
    let mut first = sqlx::Connection::begin(&mut connection).await.unwrap();
    sqlx::query("select 1 from bare.thing where id = $1 for update")
        .bind(thing)
        .execute(&mut *first)
        .await
        .unwrap();
    world.scans().run_scans(caller.request(RunScansRequest {})).await.unwrap();
    waits_for_a_lock(&world).await;
    let cause: String = sqlx::query_scalar(
        "select (extract(epoch from since) * 1000)::bigint::text from bare.thing where id = $1",
    )
    .bind(thing)
    .fetch_one(&mut *first)
    .await
    .unwrap();
    sqlx::query("insert into bare.scan_told values ($1, 'thing.still', $2, $3, $4)")
        .bind(caller.account.id)
        .bind(thing)
        .bind(cause)
        .bind(world.clock.now())
        .execute(&mut *first)
        .await
        .unwrap();
    first.commit().await.unwrap();
    world.looked(&caller).await;
    assert_eq!(world.events(&caller).await, [], "the other one has told it");
}

async fn waits_for_a_lock(world: &World) {
    eventually("the scan waits for the thing", async || {
        let sql = "select exists (select from pg_stat_activity
                   where datname = current_database() and wait_event_type = 'Lock' and query like '%bare.thing%')";
        sqlx::query_scalar(sql).fetch_one(&mut world.database.connect().await).await.unwrap()
    })
    .await;
}

#[tokio::test]
async fn what_ends_while_it_is_about_to_be_told_is_not_told() {
    let world = World::new(1).await;
    let caller = world.account().await;
    world.looked(&caller).await;
    let thing = world.add(&caller, "still", world.clock.now() - TimeDelta::days(4)).await;
    let mut connection = world.database.connect().await;
    let mut change = sqlx::Connection::begin(&mut connection).await.unwrap();
    let sql = "update bare.thing set since = $2 where id = $1";
    sqlx::query(sql).bind(thing).bind(world.clock.now()).execute(&mut *change).await.unwrap();
    world.scans().run_scans(caller.request(RunScansRequest {})).await.unwrap();
    waits_for_a_lock(&world).await;
    change.commit().await.unwrap();
    world.looked(&caller).await;
    assert_eq!((world.events(&caller).await, world.remembered(&caller).await), (vec![], 0));
}

#[tokio::test]
async fn causes_that_can_no_longer_hold_are_forgotten() {
    let world = World::new(1).await;
    let caller = world.account().await;
    let thing = world.add(&caller, "still", world.clock.now()).await;
    for told in 1..=3 {
        world.clock.advance(TimeDelta::days(3));
        world.looked(&caller).await;
        assert_eq!((world.events(&caller).await.len(), world.remembered(&caller).await), (told, 1));
        world.set_since(thing, world.clock.now()).await;
    }
    sqlx::raw_sql("delete from bare.thing").execute(&mut world.database.connect().await).await.unwrap();
    world.look(&caller).await;
    assert_eq!(world.remembered(&caller).await, 0);
}

#[tokio::test]
async fn what_another_service_denies_is_asked_again_and_does_not_hide_the_rest() {
    let world = World::new(1).await;
    let caller = world.account().await;
    world.looked(&caller).await;
    let things = world.add_many(&caller, "alone", world.clock.now() - TimeDelta::hours(3), 201).await;
    let (last, denied) = things.split_last().unwrap();
    sqlx::query("update bare.thing set company = 'a friend' where id = any($1)")
        .bind(denied)
        .execute(&mut world.database.connect().await)
        .await
        .unwrap();
    world.look(&caller).await;
    let alone = |thing: Uuid| ("thing.alone".to_owned(), thing, json!({"name": "x", "hours": 2}));
    assert_eq!(world.events(&caller).await.last(), Some(&alone(*last)));
    assert!(world.events(&caller).await.iter().all(|told| *told == alone(*last)));
    world.set_company(denied[0], "").await;
    world.clock.advance(TimeDelta::hours(1));
    world.looked(&caller).await;
    assert_eq!(world.events(&caller).await, [alone(*last), alone(denied[0])]);
}

#[tokio::test]
async fn what_another_service_no_longer_lists_is_forgotten_and_told_again_when_it_is_back() {
    let world = World::new(1).await;
    let caller = world.account().await;
    let since = world.clock.now() - TimeDelta::hours(3);
    let things = world.add_many(&caller, "alone", since, 3).await;
    for (kind, told, remembered) in [("alone", 3, 3), ("gone", 3, 2), ("alone", 4, 3)] {
        world.set_kind(things[1], kind).await;
        world.look(&caller).await;
        let outcome = (world.events(&caller).await.len(), world.remembered(&caller).await);
        assert_eq!(outcome, (told, remembered), "{kind}");
    }
    assert_eq!(world.events(&caller).await[3].1, things[1]);
}

#[tokio::test]
async fn a_scan_that_fails_holds_up_no_other_and_is_tried_again_soon() {
    let world = World::new(1).await;
    let caller = world.account().await;
    world.looked(&caller).await;
    let since = world.clock.now() - TimeDelta::days(4);
    let alone = world.add(&caller, "alone", since).await;
    world.set_company(alone, "broken").await;
    let thing = world.add(&caller, "still", since).await;
    let dated = world.add(&caller, "dated", since).await;
    world.look(&caller).await;
    let others = [still(thing, 3), ("thing.dated".to_owned(), dated, json!({}))];
    assert_eq!(world.events(&caller).await, others);
    world.set_company(alone, "").await;
    world.clock.advance(TimeDelta::minutes(5));
    world.looked(&caller).await;
    let told = world.events(&caller).await;
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!(told[2].1, alone);
}
