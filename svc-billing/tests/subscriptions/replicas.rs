use chassis_testing::eventually;
use chrono::{NaiveDate, TimeDelta};
use serde_json::json;

use crate::support::{User, World};

/// The invoices of a year of weekly billing.
const WEEKS: usize = 53;

async fn yearly_backlog(user: &User) -> Vec<serde_json::Value> {
    let since = json!({
        "frequency": "weekly", "subscription_start": "2025-11-16", "first_generate_date": "2025-11-16",
        "subscription_end": "2026-11-15",
    });
    let mut all = Vec::new();
    for _ in 0..2 {
        all.push(user.hosting(since.clone()).await);
    }
    all
}

/// The numbers of invoices, of different periods, of different numbers, and the value of the counters.
async fn counted(world: &World, user: &User) -> [i64; 4] {
    let (invoices, periods, numbers, counted): (i64, i64, i64, i64) = sqlx::query_as(
        "select count(*), count(distinct (subscription_id, period_from)), count(distinct number),
                (select coalesce(sum(value), 0)::bigint from billing.counter where account_id = $1 and name like 'invoice/%')
         from billing.document where account_id = $1",
    )
    .bind(user.account.id)
    .fetch_one(&mut world.database.connect().await)
    .await
    .unwrap();
    [invoices, periods, numbers, counted]
}

#[tokio::test(flavor = "multi_thread")]
async fn several_workers_together_bill_each_date_once() {
    let mut world = World::new().await;
    let mut users = Vec::new();
    for _ in 0..4 {
        users.push(world.user().await);
        yearly_backlog(users.last().unwrap()).await;
    }
    for _ in 0..3 {
        world.add_replica().await;
    }
    let expected = i64::try_from(2 * WEEKS).unwrap();
    for user in &users {
        eventually("all is made", async || {
            // The workers redistribute the leases as time passes.
            world.clock.advance(TimeDelta::milliseconds(200));
            counted(&world, user).await[0] >= expected
        })
        .await;
        world.settled(user).await;
        assert_eq!(counted(&world, user).await, [expected; 4], "one each, and no number is missing");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_ended_is_replaced_and_nothing_is_billed_twice() {
    let mut world = World::working(1).await;
    let user = world.user().await;
    let all = yearly_backlog(&user).await;
    eventually("the first worker is at it", async || counted(&world, &user).await[0] > 3).await;
    world.kill_replica();
    world.add_replica().await;
    // The leases of the ended worker have expired.
    world.clock.advance(TimeDelta::seconds(16));
    world.settled(&user).await;
    let expected = i64::try_from(2 * WEEKS).unwrap();
    assert_eq!(counted(&world, &user).await, [expected; 4]);
    let first = NaiveDate::from_ymd_opt(2025, 11, 16).unwrap();
    let weekly: Vec<String> = first.iter_weeks().take(WEEKS).map(|date| date.to_string()).collect();
    for subscription in &all {
        assert_eq!(user.dates(subscription).await, weekly);
    }
}
