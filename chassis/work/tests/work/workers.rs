//! Partition leases on real Postgres: shared fairly, taken over when their owner is gone, and fenced against a late
//! owner.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chassis_base::{Account, AccountId, Clock, Error};
use chassis_data::{Db, Tx};
use chassis_testing::bare::{database, open, write};
use chassis_testing::{TestDatabase, eventually};
use chassis_work::worker::{Due, IMMEDIATELY, Job, Next, Worker, Workers};
use chrono::TimeDelta;
use uuid::Uuid;

/// Each counter named `todo` with a value above zero is work.
fn todo() -> Due {
    Due::new("counter work", "work.name = $argument and work.value > 0", IMMEDIATELY).argument("todo")
}

async fn assign(db: &Db, account: &Account, amount: i64) {
    write(db, account, async |tx| {
        let account = tx.account();
        sqlx::query(
            "insert into counter (account_id, name, value) values ($1, 'todo', $2)
             on conflict (account_id, name) do update set value = $2",
        )
        .bind(account)
        .bind(amount)
        .execute(tx.db())
        .await?;
        Ok(())
    })
    .await;
}

async fn do_one(tx: &mut Tx<'_>, (): &()) -> Result<(), Error> {
    let account = tx.account();
    sqlx::query("update counter set value = value - 1 where account_id = $1 and name = 'todo'")
        .bind(account)
        .execute(tx.db())
        .await?;
    Ok(())
}

async fn left(database: &TestDatabase) -> i64 {
    number(database, "select coalesce(sum(value), 0)::bigint from bare.counter where name = 'todo'").await
}

async fn number(database: &TestDatabase, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(&mut database.connect().await).await.unwrap()
}

/// How many partitions each owner holds.
async fn shares(database: &TestDatabase, clock: &Clock) -> Vec<i64> {
    let mut connection = database.connect().await;
    sqlx::query_scalar("select count(*) from bare.lease where until > $1 group by owner order by 1")
        .bind(clock.now())
        .fetch_all(&mut connection)
        .await
        .unwrap()
}

fn simple(db: &Db) -> Workers {
    let worker = Worker::new("todo", todo(), async |job: Job| {
        job.write(&(), do_one).await?;
        Ok(Next::WhenDue)
    });
    Workers::start(db, vec![worker], chassis_testing::timing())
}

#[derive(Default)]
struct Watch {
    running: Mutex<HashSet<AccountId>>,
    done_by: Mutex<HashMap<usize, u32>>,
    doubled: AtomicBool,
}

fn watched(db: &Db, replica: usize, watch: &Arc<Watch>) -> Workers {
    let watch = Arc::clone(watch);
    let worker = Worker::new("todo", todo(), move |job: Job| {
        let watch = Arc::clone(&watch);
        async move {
            // Recorded for the test, because the worker would catch a panic here.
            if !watch.running.lock().unwrap().insert(job.account_id()) {
                watch.doubled.store(true, Ordering::SeqCst);
            }
            let done = job.write(&(), do_one).await;
            watch.running.lock().unwrap().remove(&job.account_id());
            done?;
            *watch.done_by.lock().unwrap().entry(replica).or_default() += 1;
            Ok(Next::WhenDue)
        }
    });
    Workers::start(db, vec![worker], chassis_testing::timing())
}

#[tokio::test]
async fn two_replicas_share_the_partitions_and_no_account_is_worked_on_twice_at_once() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let (one, two) = (open(&database, &clock), open(&database, &clock));
    let watch = Arc::new(Watch::default());
    let first = watched(&one, 1, &watch);
    eventually("the first replica takes everything", async || shares(&database, &clock).await == [64]).await;
    let second = watched(&two, 2, &watch);
    eventually("the replicas share evenly", async || {
        clock.advance(TimeDelta::milliseconds(100));
        shares(&database, &clock).await == [32, 32]
    })
    .await;
    for _ in 0..40 {
        assign(&one, &chassis_testing::account(), 3).await;
    }
    let done = || watch.done_by.lock().unwrap().values().sum::<u32>();
    // The watch counts a job shortly after its commit is visible.
    eventually("all work is done", async || left(&database).await == 0 && done() >= 120).await;
    assert!(!watch.doubled.load(Ordering::SeqCst), "an account was worked on twice at the same time");
    let done_by = watch.done_by.lock().unwrap().clone();
    assert_eq!(done(), 120);
    assert_eq!(done_by.len(), 2, "both did a part: {done_by:?}");
    first.stop(std::time::Duration::from_secs(10)).await;
    second.stop(std::time::Duration::from_secs(10)).await;
    assert!(shares(&database, &clock).await.is_empty(), "a stop gives the leases back");
    assert_eq!(number(&database, "select count(*) from bare.replica").await, 0);
}

#[tokio::test]
async fn a_killed_owner_is_replaced_when_its_lease_ends() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let (one, two) = (open(&database, &clock), open(&database, &clock));
    let killed = simple(&one);
    eventually("the first replica takes everything", async || shares(&database, &clock).await == [64]).await;
    drop(killed);
    assign(&two, &chassis_testing::account(), 1).await;
    let _second = simple(&two);
    let replicas = "select count(*) from bare.replica";
    eventually("the second replica has looked", async || number(&database, replicas).await == 2).await;
    assert_eq!(left(&database).await, 1, "the lease of the first still stands");
    clock.advance(TimeDelta::seconds(15));
    eventually("the second does the work", async || left(&database).await == 0).await;
}

#[tokio::test]
async fn a_stopped_owner_is_replaced_at_once() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let db = open(&database, &clock);
    let first = simple(&db);
    eventually("the first replica takes everything", async || shares(&database, &clock).await == [64]).await;
    first.stop(std::time::Duration::from_secs(10)).await;
    assign(&db, &chassis_testing::account(), 1).await;
    let _second = simple(&db);
    eventually("the second does the work", async || left(&database).await == 0).await;
}

#[tokio::test]
async fn what_an_owner_of_too_much_gives_back_is_taken_at_once() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let until = clock.now() + TimeDelta::seconds(15);
    sqlx::query("insert into bare.replica (worker, owner, until) values ('todo', $1, $2)")
        .bind(Uuid::max())
        .bind(until)
        .execute(&mut database.connect().await)
        .await
        .unwrap();
    sqlx::query(
        "insert into bare.lease (worker, partition, owner, until, fence)
         select 'todo', partition, $1, $2, 1 from generate_series(0, 63) as all_of_them (partition)",
    )
    .bind(Uuid::max())
    .bind(until)
    .execute(&mut database.connect().await)
    .await
    .unwrap();
    let _second = simple(&open(&database, &clock));
    let replicas = "select count(*) from bare.replica";
    eventually("the second replica has looked", async || number(&database, replicas).await == 2).await;
    for given_back in [10, 20, 32] {
        sqlx::query("update bare.lease set owner = $1, until = $2 where partition < $3 and owner = $4")
            .bind(Uuid::nil())
            .bind(clock.now())
            .bind(given_back)
            .bind(Uuid::max())
            .execute(&mut database.connect().await)
            .await
            .unwrap();
        let expected = [given_back, 64 - given_back];
        // The clock does not advance.
        eventually("the second replica takes them", async || shares(&database, &clock).await == expected)
            .await;
    }
}

/// Advances the clock by the length of a lease at a time, and waits for each renewal.
async fn let_renew(database: &TestDatabase, clock: &Clock, times: usize) {
    for _ in 0..times {
        clock.advance(chassis_testing::timing().lease);
        let until = clock.now() + chassis_testing::timing().lease;
        eventually("the leases are renewed", async || {
            let sql = "select count(*) from bare.replica where until < $1";
            let late: i64 =
                sqlx::query_scalar(sql).bind(until).fetch_one(&mut database.connect().await).await.unwrap();
            late == 0
        })
        .await;
    }
}

#[tokio::test]
async fn a_renewal_writes_one_row_for_each_worker_in_one_statement() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let db = open(&database, &clock);
    let worker = |name: &'static str| Worker::new(name, todo(), async |_| Ok(Next::WhenDue));
    let workers = ["one", "two", "three"].map(worker).into();
    let _workers = Workers::start(&db, workers, chassis_testing::timing());
    eventually("all are leased", async || shares(&database, &clock).await == [192]).await;
    // Rows that one statement has written have the same transaction.
    let writer = "select max(xmin::text)::bigint from bare.lease";
    let leased = number(&database, writer).await;
    for _ in 0..2 {
        let_renew(&database, &clock, 1).await;
        assert_eq!(number(&database, "select count(distinct xmin::text) from bare.replica").await, 1);
        assert_eq!(number(&database, "select count(*) from bare.replica").await, 3);
        assert_eq!(number(&database, writer).await, leased, "the leases themselves stay as they are");
    }
}

#[tokio::test]
async fn to_the_release_before_a_lease_is_valid_as_long_as_its_owner_lives() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let db = open(&database, &clock);
    let _workers = simple(&db);
    eventually("all are leased", async || shares(&database, &clock).await == [64]).await;
    // Such a program takes what has ended according to its row. Each promise lasts for 40 of these renewals.
    for _ in 0..45 {
        let_renew(&database, &clock, 1).await;
        assert_eq!(shares(&database, &clock).await, [64]);
    }
}

#[tokio::test]
async fn a_job_in_the_middle_of_a_transaction_holds_up_no_renewal_and_keeps_its_lease() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let (one, two) = (open(&database, &clock), open(&database, &clock));
    let (began, go_on) = (Arc::new(AtomicBool::new(false)), Arc::new(tokio::sync::Notify::new()));
    let signals = (Arc::clone(&began), Arc::clone(&go_on));
    let worker = Worker::new("todo", todo(), move |job: Job| {
        let signals = signals.clone();
        async move {
            job.write(&signals, do_one_slowly).await?;
            Ok(Next::WhenDue)
        }
    });
    let _workers = Workers::start(&one, vec![worker], chassis_testing::timing());
    eventually("all are leased", async || shares(&database, &clock).await == [64]).await;
    assign(&one, &chassis_testing::account(), 1).await;
    eventually("the job is in its transaction", async || began.load(Ordering::SeqCst)).await;
    // Longer than a lease, and than what its row promises.
    let_renew(&database, &clock, 45).await;
    let _second = simple(&two);
    eventually("the second has its share", async || {
        clock.advance(TimeDelta::milliseconds(100));
        shares(&database, &clock).await.contains(&32)
    })
    .await;
    assert_eq!(left(&database).await, 1, "the second leaves the account alone");
    go_on.notify_one();
    eventually("the job ends under its lease", async || left(&database).await == 0).await;
    eventually("both have their share", async || {
        clock.advance(TimeDelta::milliseconds(100));
        shares(&database, &clock).await == [32, 32]
    })
    .await;
}

type Signals = (Arc<AtomicBool>, Arc<tokio::sync::Notify>);

async fn do_one_slowly(tx: &mut Tx<'_>, (began, go_on): &Signals) -> Result<(), Error> {
    began.store(true, Ordering::SeqCst);
    go_on.notified().await;
    do_one(tx, &()).await
}

#[tokio::test]
async fn the_write_of_a_late_owner_fails_by_its_fence() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let (one, two) = (open(&database, &clock), open(&database, &clock));
    let kept: Arc<Mutex<Option<Job>>> = Arc::default();
    let keep = Arc::clone(&kept);
    let worker = Worker::new("todo", todo(), move |job: Job| {
        keep.lock().unwrap().get_or_insert(job);
        std::future::ready(Ok(Next::After(TimeDelta::hours(1))))
    });
    let first = Workers::start(&one, vec![worker], chassis_testing::timing());
    assign(&one, &chassis_testing::account(), 2).await;
    eventually("the job has begun", async || kept.lock().unwrap().is_some()).await;
    let late = kept.lock().unwrap().take().unwrap();
    late.write(&(), do_one).await.unwrap();
    assert_eq!(left(&database).await, 1, "the owner may write");

    drop(first);
    clock.advance(TimeDelta::seconds(15));
    let _second = simple(&two);
    eventually("the second does the work", async || left(&database).await == 0).await;
    let refused = late.write(&(), do_one).await;
    assert!(matches!(refused, Err(Error::LeaseLost)), "{refused:?}");
    assert_eq!(left(&database).await, 0, "nothing was written");
}

#[tokio::test]
async fn an_account_whose_job_fails_or_panics_waits_alone() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let db = open(&database, &clock);
    let (panics, fails) = (chassis_testing::account(), chassis_testing::account());
    let troubled: Arc<Mutex<HashMap<AccountId, Vec<Instant>>>> = Arc::default();
    let (seen, panicking, failing) = (Arc::clone(&troubled), panics.id, fails.id);
    let worker = Worker::new("todo", todo(), move |job: Job| {
        let seen = Arc::clone(&seen);
        async move {
            let id = job.account_id();
            let attempt = {
                let mut seen = seen.lock().unwrap();
                let attempts = seen.entry(id).or_default();
                attempts.push(Instant::now());
                attempts.len()
            };
            assert!(attempt > 1 || id != panicking, "on purpose");
            if attempt == 1 && id == failing {
                return Err(Error::Internal("on purpose".into()));
            }
            job.write(&(), do_one).await?;
            Ok(Next::WhenDue)
        }
    });
    let _workers = Workers::start(&db, vec![worker], chassis_testing::timing());
    assign(&db, &panics, 1).await;
    assign(&db, &fails, 1).await;
    for _ in 0..10 {
        assign(&db, &chassis_testing::account(), 1).await;
    }
    eventually("all are served, those that failed also while the clock stands", async || {
        left(&database).await == 0
    })
    .await;
    let seen = troubled.lock().unwrap();
    for account in [panics.id, fails.id] {
        let [first, second] = seen[&account][..] else { panic!("{:?}", seen[&account]) };
        assert!(second - first >= Duration::from_millis(250), "left alone for a while");
    }
}

#[tokio::test]
async fn accounts_are_found_in_order_also_when_there_are_more_than_one_look_takes() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let db = open(&database, &clock);
    let mut connection = database.connect().await;
    let ids: Vec<Uuid> = (0..1200).map(|_| Uuid::new_v4()).collect();
    sqlx::query("insert into bare.counter select id, 'todo', 1 from unnest($1::uuid[]) id")
        .bind(&ids)
        .execute(&mut connection)
        .await
        .unwrap();
    let _workers = simple(&db);
    eventually("all work is done", async || left(&database).await == 0).await;
}

#[tokio::test]
async fn idempotency_keys_are_forgotten_after_their_window() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let mut connection = database.connect().await;
    let rows = "insert into bare.idempotency (account_id, route, key, fingerprint, created_at)
                select $1, 'r', n::text, '', $2 from generate_series($3::int, $4::int) n";
    let old = clock.now() - chassis_data::idempotency::WINDOW;
    let young = old + TimeDelta::milliseconds(1);
    for (time, from, to) in [(old, 1, 12_000), (young, 12_001, 12_007)] {
        let id = Uuid::from_u128(77);
        sqlx::query(rows).bind(id).bind(time).bind(from).bind(to).execute(&mut connection).await.unwrap();
    }
    let _service =
        chassis_testing::start_working::<chassis_testing::bare::Bare>(database.url(), &clock, &[]).await;
    let count = "select count(*) from bare.idempotency";
    eventually("the old keys are gone", async || number(&database, count).await == 7).await;
}

#[tokio::test]
async fn a_job_that_steps_aside_lets_another_account_work() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let db = open(&database, &clock);
    let [slow, quick] = [chassis_testing::account(), chassis_testing::account()];
    let (waits, answer) = (Arc::new(AtomicBool::new(false)), Arc::new(tokio::sync::Notify::new()));
    let (waiting, answered, slow_id) = (Arc::clone(&waits), Arc::clone(&answer), slow.id);
    let work = Worker::new("work", todo(), move |job: Job| {
        let (waiting, answered) = (Arc::clone(&waiting), Arc::clone(&answered));
        async move {
            if job.account_id() == slow_id {
                job.release_slot();
                waiting.store(true, Ordering::SeqCst);
                answered.notified().await;
                job.reacquire_slot().await;
            }
            job.write(&(), do_one).await?;
            Ok(Next::WhenDue)
        }
    });
    let workers = Workers::start(&db, vec![work.concurrency(1)], chassis_testing::timing());
    assign(&db, &slow, 1).await;
    eventually("the slow one waits", async || waits.load(Ordering::SeqCst)).await;
    assign(&db, &quick, 1).await;
    eventually("the quick one is done", async || left(&database).await == 1).await;
    answer.notify_one();
    eventually("both are done", async || left(&database).await == 0).await;
    drop(workers);
}
