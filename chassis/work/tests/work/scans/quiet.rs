//! Accounts in which nothing comes are left alone, and yet each event comes within the hour after it is due.

use chassis_testing::TestCaller;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;

use super::still;
use super::world::World;

const HOUR: TimeDelta = TimeDelta::hours(1);
const DAY: TimeDelta = TimeDelta::days(1);

/// An account for which a new record of the other service is not told within a week: otherwise its turns come hourly.
async fn patient(world: &World) -> TestCaller {
    let caller = world.account().await;
    world.set(&caller, "thing.alone", Some(240)).await.unwrap();
    caller
}

fn is_most_of(time: TimeDelta, full: TimeDelta) -> bool {
    (full / 2..=full).contains(&time)
}

#[tokio::test]
async fn an_account_in_which_nothing_comes_is_not_visited_for_days() {
    let world = World::new(1).await;
    let (idle, busy) = (patient(&world).await, world.account().await);
    let quiet = world.settle(&idle).await;
    assert!(is_most_of(quiet, TimeDelta::days(7)), "{quiet}");
    let until = world.clock.now() + quiet;
    let before = world.plan(&idle).await.next_at;
    for _ in 1..quiet.num_days() {
        world.clock.advance(DAY);
        // The other account is visited as always.
        world.looked(&busy).await;
    }
    assert_eq!(world.plan(&idle).await.next_at, before, "it was not visited");
    world.next_turn(&idle).await;
    assert_eq!(world.clock.now(), until);
    assert_eq!(world.plan(&idle).await.next_at, until + HOUR, "it was visited");
}

#[tokio::test]
async fn what_time_brings_after_days_is_told_within_the_hour_although_nobody_writes() {
    let world = World::new(1).await;
    let caller = world.account().await;
    let since = world.clock.now() + TimeDelta::minutes(12);
    let thing = world.add(&caller, "still", since).await;
    world.set(&caller, "thing.alone", Some(240)).await.unwrap();
    world.looked(&caller).await;
    let due = since + TimeDelta::days(3);
    let turns = world.turns_to_event(&caller, due + HOUR).await;
    assert_eq!(world.events(&caller).await, [still(thing, 3)]);
    assert!(world.clock.now() >= due);
    assert!(turns < 40, "{turns} turns, and hourly ones would be 72");
}

#[tokio::test]
async fn what_time_ends_is_told_before_although_a_look_far_ahead_does_not_show_it() {
    let world = World::new(1).await;
    let caller = world.account().await;
    let end = world.clock.now() + TimeDelta::days(4);
    let thing = world.add(&caller, "ending", end).await;
    world.set(&caller, "thing.alone", Some(240)).await.unwrap();
    world.looked(&caller).await;
    world.turns_to_event(&caller, end - DAY + HOUR).await;
    assert_eq!(world.events(&caller).await, [("thing.ending".to_owned(), thing, json!({"days": 1}))]);
}

#[tokio::test]
async fn a_change_ends_the_quiet_and_what_comes_of_it_is_told_in_time() {
    let world = World::new(1).await;
    let caller = patient(&world).await;
    world.settle(&caller).await;
    world.clock.advance(DAY);
    let due = world.clock.now() + TimeDelta::hours(2);
    let thing = world.add(&caller, "still", due - TimeDelta::days(3)).await;
    world.rename(&caller, "Mill").await;
    world.looked(&caller).await;
    assert_eq!(world.events(&caller).await, []);
    world.turns_to_event(&caller, due + HOUR).await;
    assert_eq!(world.events(&caller).await, [still(thing, 3)]);
    assert!(world.clock.now() >= due);
}

#[tokio::test]
async fn a_threshold_that_is_lowered_ends_the_quiet() {
    let world = World::new(1).await;
    let caller = patient(&world).await;
    world.set(&caller, "thing.still", Some(100)).await.unwrap();
    // A turn that is under way goes by the threshold of before.
    world.settle(&caller).await;
    let thing = world.add(&caller, "still", world.clock.now() - TimeDelta::days(10)).await;
    world.next_turn(&caller).await;
    world.settle(&caller).await;
    world.set(&caller, "thing.still", Some(9)).await.unwrap();
    world.looked(&caller).await;
    assert_eq!(world.events(&caller).await, [still(thing, 9)]);
}

#[tokio::test]
async fn a_request_ends_the_quiet() {
    let world = World::new(1).await;
    let caller = patient(&world).await;
    world.settle(&caller).await;
    // Not logged, so that nothing but the request tells of it. Also at the very time at which an hourly turn would come.
    let thing = world.add(&caller, "still", world.clock.now() - TimeDelta::days(4)).await;
    world.clock.advance(HOUR);
    world.look(&caller).await;
    assert_eq!(world.events(&caller).await, [still(thing, 3)]);
}

#[tokio::test]
async fn another_time_zone_ends_the_quiet() {
    let world = World::new(1).await;
    let caller = patient(&world).await;
    world.settle(&caller).await;
    let sql = "update bare.account set timezone = 'Pacific/Auckland' where account_id = $1";
    let mut connection = world.database.connect().await;
    sqlx::query(sql).bind(caller.account.id).execute(&mut connection).await.unwrap();
    world.clock.advance(HOUR);
    world.looked(&caller).await;
    assert_eq!(world.plan(&caller).await.next_at, world.clock.now() + HOUR);
}

#[tokio::test]
async fn a_turn_of_the_release_before_is_followed_by_another_after_an_hour() {
    let world = World::new(1).await;
    let caller = patient(&world).await;
    // It leaves the columns that it does not know as they are, or, in a new row, null.
    for forget in ["", ", quiet_until = null, quiet_next_at = null, quiet_position = null, quiet_zone = null"]
    {
        world.settle(&caller).await;
        world.clock.advance(TimeDelta::minutes(90));
        let next_at: DateTime<Utc> = world.clock.now() + HOUR;
        let sql = format!("update bare.scan_turn set next_at = $2{forget} where account_id = $1");
        sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(caller.account.id)
            .bind(next_at)
            .execute(&mut world.database.connect().await)
            .await
            .unwrap();
        assert_eq!(world.plan(&caller).await.quiet_until, None);
        world.clock.advance(HOUR);
        world.looked(&caller).await;
        assert_eq!(world.plan(&caller).await.next_at, next_at + HOUR, "it was visited{forget}");
    }
}

#[tokio::test]
async fn an_account_is_not_quiet_for_longer_than_a_new_record_of_another_service_may_take() {
    let world = World::new(1).await;
    let caller = world.account().await;
    for (hours, full) in [(24 * 7, TimeDelta::days(7)), (24 * 7 - 1, DAY), (24, DAY)] {
        world.set(&caller, "thing.alone", Some(hours)).await.unwrap();
        let quiet = world.settle(&caller).await;
        assert!(is_most_of(quiet, full), "{hours} hours: {quiet}");
    }
    // Nothing tells this service of it.
    let since = world.clock.now() + TimeDelta::minutes(1);
    let thing = world.add(&caller, "alone", since).await;
    world.turns_to_event(&caller, since + DAY + HOUR).await;
    assert_eq!(world.events(&caller).await[0].1, thing);
    world.set(&caller, "thing.alone", Some(23)).await.unwrap();
    world.looked(&caller).await;
    for _ in 0..3 {
        world.next_turn(&caller).await;
        assert_eq!(world.plan(&caller).await.quiet_until, None, "hourly");
    }
}
