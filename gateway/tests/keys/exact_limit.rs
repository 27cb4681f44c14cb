//! Never more than 30 accepted in any 60 seconds, whoever counts.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use gateway::limits::ExactLimit;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::World;

#[tokio::test]
async fn of_forty_requests_at_once_over_two_replicas_exactly_thirty_are_accepted() {
    let world = World::new().await;
    let (_, caller) = world.caller().await;
    let replicas = [world.replica(), world.replica()];
    let limits = [Arc::new(ExactLimit::default()), Arc::new(ExactLimit::default())];
    let mut checks = tokio::task::JoinSet::new();
    for turn in 0..40 {
        let (db, limit) = (replicas[turn % 2].db.clone(), Arc::clone(&limits[turn % 2]));
        let (caller, now) = (Arc::clone(&caller), world.clock.now());
        checks.spawn(async move { limit.check(&db, &caller, now).await.unwrap() });
    }
    let decisions = checks.join_all().await;
    let (accepted, refused): (Vec<_>, Vec<_>) = decisions.into_iter().partition(|decision| decision.allowed);
    assert_eq!(accepted.len(), 30);
    let mut remaining: Vec<u32> = accepted.iter().map(|decision| decision.remaining).collect();
    remaining.sort_unstable();
    assert_eq!(remaining, (0..30).collect::<Vec<_>>());
    assert!(refused.iter().all(|decision| decision.retry_after_seconds == 60 && decision.remaining == 0));
}

async fn accepted(world: &World, limit: &ExactLimit, caller: &gateway::keys::Caller, tries: u32) -> u32 {
    let mut accepted = 0;
    for _ in 0..tries {
        let decision = limit.check(&world.runtime.db, caller, world.clock.now()).await.unwrap();
        accepted += u32::from(decision.allowed);
    }
    accepted
}

#[tokio::test]
async fn the_window_slides_and_a_hit_leaves_it_after_exactly_sixty_seconds() {
    let world = World::new().await;
    let (_, caller) = world.caller().await;
    let limit = ExactLimit::default();
    assert_eq!(accepted(&world, &limit, &caller, 10).await, 10);
    world.clock.advance(TimeDelta::seconds(30));
    assert_eq!(accepted(&world, &limit, &caller, 40).await, 20);
    world.clock.advance(TimeDelta::milliseconds(29_999));
    let refused = limit.check(&world.runtime.db, &caller, world.clock.now()).await.unwrap();
    assert!(!refused.allowed);
    assert_eq!(refused.retry_after_seconds, 1, "a part of a second is rounded up");
    world.clock.advance(TimeDelta::milliseconds(1));
    assert_eq!(accepted(&world, &limit, &caller, 40).await, 10);
}

#[tokio::test]
async fn a_request_that_was_overtaken_is_counted_in_its_own_window() {
    let world = World::new().await;
    let (_, caller) = world.caller().await;
    let (early, late) = (ExactLimit::default(), ExactLimit::default());
    assert_eq!(accepted(&world, &early, &caller, 30).await, 30);
    let overtaken = world.clock.now() + TimeDelta::milliseconds(59_999);
    world.clock.advance(TimeDelta::seconds(60));
    assert_eq!(accepted(&world, &early, &caller, 1).await, 1);
    let decision = late.check(&world.runtime.db, &caller, overtaken).await.unwrap();
    assert!(!decision.allowed, "the 30 of its window were accepted less than 60 seconds before it");
}

#[tokio::test]
async fn each_key_has_its_own_thirty() {
    let world = World::new().await;
    let (_, one) = world.caller().await;
    let other = world.key(crate::support::key_for("Bakery")).await.secret;
    let other = world.authenticator().authenticate(&other).await.unwrap();
    let limit = ExactLimit::default();
    assert_eq!(accepted(&world, &limit, &one, 31).await, 30);
    assert_eq!(accepted(&world, &limit, &other, 31).await, 30);
}

/// The most that any 60 seconds hold: it is enough to look at the ones that begin with a request.
fn most_in_a_window(mut times: Vec<DateTime<Utc>>) -> usize {
    times.sort_unstable();
    let window = |start: &DateTime<Utc>| {
        times.iter().filter(|t| *t >= start && **t < *start + TimeDelta::seconds(60)).count()
    };
    times.iter().map(window).max().unwrap_or_default()
}

#[test]
fn no_sixty_seconds_ever_hold_more_than_thirty_accepted_requests() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let world = runtime.block_on(World::new());
    let (_, caller) = runtime.block_on(world.caller());
    // Steps forward, with now and then a replica whose clock is behind.
    let step = prop_oneof![8 => 0..2_500_i64, 1 => 2_500..70_000_i64, 2 => -4_000..0_i64];
    let steps = proptest::collection::vec((step, any::<bool>()), 1..120);
    let mut runner = TestRunner::new(Config { cases: 24, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&steps, |steps| {
        let limits = [ExactLimit::default(), ExactLimit::default()];
        world.clock.advance(TimeDelta::hours(1));
        let mut now = world.clock.now();
        let mut times = Vec::new();
        for (step, replica) in steps {
            now += TimeDelta::milliseconds(step);
            let check = limits[usize::from(replica)].check(&world.runtime.db, &caller, now);
            let decision = runtime.block_on(check).unwrap();
            if decision.allowed {
                times.push(now);
            } else if times.iter().all(|time| *time <= now) {
                // By a clock that is not behind: one that is may be told to come back a little early.
                let again = now + TimeDelta::seconds(i64::try_from(decision.retry_after_seconds).unwrap());
                let counted = times.iter().filter(|time| **time > again - TimeDelta::seconds(60)).count();
                prop_assert!(counted < 30, "there is room again after Retry-After");
            }
        }
        prop_assert!(most_in_a_window(times) <= 30);
        Ok(())
    });
    outcome.unwrap();
}
