//! How background work is found: by commits of this and other processes, by its due time, and by sweeps, even while
//! some accounts are unreachable.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chassis_base::{Account, Clock, Error};
use chassis_data::{Db, Tx};
use chassis_testing::bare::{database, open, write};
use chassis_testing::{TestDatabase, eventually};
use chassis_work::worker::{Due, IMMEDIATELY, Job, Next, Timing, Worker, Workers};
use chrono::TimeDelta;

/// An interval that is too long for the tests, so that no periodic sweep finds the work.
fn rarely_swept() -> Timing {
    Timing { sweep: Duration::from_hours(1), ..chassis_testing::timing() }
}

/// Queued mails are work; a job marks them as sent.
fn working(db: &Db, timing: Timing) -> Workers {
    start(db, Due::new("mail work", "work.status = 'queued'", "work.next_at"), timing)
}

fn start(db: &Db, due: Due, timing: Timing) -> Workers {
    let worker = Worker::new("send", due, async |job: Job| {
        job.write(&(), send).await?;
        Ok(Next::WhenDue)
    });
    Workers::start(db, vec![worker], timing)
}

async fn send(tx: &mut Tx<'_>, (): &()) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let sql = "update mail set status = 'sent' where account_id = $1 and status = 'queued' and next_at <= $2";
    sqlx::query(sql).bind(account).bind(now).execute(tx.db()).await?;
    Ok(())
}

const INSERT: &str =
    "insert into bare.mail (account_id, id, sender, recipients, reference, status, next_at, created_at)
    values ($1, gen_random_uuid(), '', '{}', '', 'queued', $2, $2)";

/// Queues a mail as a service does, with a wake-up.
async fn queue(db: &Db, account: &Account, wait: TimeDelta) {
    let at = db.clock().now() + wait;
    write(db, account, async |tx| {
        let account = tx.account();
        sqlx::query(INSERT).bind(account).bind(at).execute(tx.db()).await?;
        Ok(())
    })
    .await;
}

/// Queues a mail without a wake-up, like a process that was killed after the commit.
async fn queue_silently(database: &TestDatabase, account: &Account, clock: &Clock) {
    let mut connection = database.connect().await;
    sqlx::query(INSERT).bind(account.id).bind(clock.now()).execute(&mut connection).await.unwrap();
}

async fn queued(database: &TestDatabase) -> i64 {
    let sql = "select count(*) from bare.mail where status = 'queued'";
    sqlx::query_scalar(sql).fetch_one(&mut database.connect().await).await.unwrap()
}

async fn owners(database: &TestDatabase) -> Vec<i64> {
    let sql = "select count(*) from bare.lease where owner <> '00000000-0000-0000-0000-000000000000' group by owner order by 1";
    sqlx::query_scalar(sql).fetch_all(&mut database.connect().await).await.unwrap()
}

/// Waits until all partitions are leased and the sweeps that follow have found the work queued before.
async fn settled(database: &TestDatabase, clock: &Clock, shares: &[i64]) {
    eventually("the partitions are shared", async || {
        clock.advance(TimeDelta::milliseconds(100));
        owners(database).await == shares
    })
    .await;
    eventually("what was there is done", async || queued(database).await == 0).await;
}

#[tokio::test]
async fn a_commit_of_a_process_without_workers_is_found_without_a_sweep() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let (working_one, other) = (open(&database, &clock), open(&database, &clock));
    queue_silently(&database, &chassis_testing::account(), &clock).await;
    let _workers = working(&working_one, rarely_swept());
    settled(&database, &clock, &[64]).await;
    queue(&other, &chassis_testing::account(), TimeDelta::zero()).await;
    eventually("the other's work is done", async || queued(&database).await == 0).await;
}

#[tokio::test]
async fn a_commit_of_another_replica_is_found_without_a_sweep() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let (one, two) = (open(&database, &clock), open(&database, &clock));
    queue_silently(&database, &chassis_testing::account(), &clock).await;
    let (_first, _second) = (working(&one, rarely_swept()), working(&two, rarely_swept()));
    settled(&database, &clock, &[32, 32]).await;
    // One process commits, and the other process holds half of the accounts.
    for _ in 0..40 {
        queue(&one, &chassis_testing::account(), TimeDelta::zero()).await;
    }
    eventually("both have done their half", async || queued(&database).await == 0).await;
}

#[tokio::test]
async fn a_replica_that_comes_later_is_heard_and_hears() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let (one, two) = (open(&database, &clock), open(&database, &clock));
    queue_silently(&database, &chassis_testing::account(), &clock).await;
    let _first = working(&one, rarely_swept());
    settled(&database, &clock, &[64]).await;
    let _second = working(&two, rarely_swept());
    settled(&database, &clock, &[32, 32]).await;
    for db in [&one, &two] {
        for _ in 0..40 {
            queue(db, &chassis_testing::account(), TimeDelta::zero()).await;
        }
        eventually("both have done their half", async || queued(&database).await == 0).await;
    }
}

#[tokio::test]
async fn when_a_replica_is_gone_all_accounts_are_looked_at() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let db = open(&database, &clock);
    // It does other work, so no partition changes its owner.
    sqlx::query("insert into bare.replica (worker, owner, until) values ('other', gen_random_uuid(), $1)")
        .bind(clock.now() + TimeDelta::hours(1))
        .execute(&mut database.connect().await)
        .await
        .unwrap();
    queue_silently(&database, &chassis_testing::account(), &clock).await;
    let _workers = working(&db, rarely_swept());
    settled(&database, &clock, &[64]).await;
    queue_silently(&database, &chassis_testing::account(), &clock).await;
    sqlx::raw_sql("delete from bare.replica where worker = 'other'")
        .execute(&mut database.connect().await)
        .await
        .unwrap();
    clock.advance(TimeDelta::seconds(5));
    eventually("what it committed last is found", async || queued(&database).await == 0).await;
}

#[tokio::test]
async fn work_is_done_at_its_moment_and_not_before() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let db = open(&database, &clock);
    let _workers = working(&db, rarely_swept());
    let (soon, later, now) =
        (chassis_testing::account(), chassis_testing::account(), chassis_testing::account());
    queue(&db, &soon, TimeDelta::minutes(10)).await;
    // Beyond the horizon of the schedule: a sweep finds it once the clock has passed the swept time.
    queue(&db, &later, TimeDelta::days(30)).await;
    queue(&db, &now, TimeDelta::zero()).await;
    eventually("what is due is done", async || queued(&database).await == 2).await;
    clock.advance(TimeDelta::minutes(10));
    eventually("then the next", async || queued(&database).await == 1).await;
    clock.advance(TimeDelta::days(30));
    eventually("and the last", async || queued(&database).await == 0).await;
}

#[tokio::test]
async fn what_nobody_was_told_of_is_found_by_a_sweep() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let db = open(&database, &clock);
    queue_silently(&database, &chassis_testing::account(), &clock).await;
    let often = Timing { sweep: Duration::from_millis(50), ..chassis_testing::timing() };
    let _workers = working(&db, often);
    settled(&database, &clock, &[64]).await;
    queue_silently(&database, &chassis_testing::account(), &clock).await;
    eventually("a sweep finds it", async || queued(&database).await == 0).await;
}

#[tokio::test]
async fn a_wake_up_that_was_missed_leads_to_a_sweep() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let db = open(&database, &clock);
    queue_silently(&database, &chassis_testing::account(), &clock).await;
    let _workers = working(&db, rarely_swept());
    settled(&database, &clock, &[64]).await;
    queue_silently(&database, &chassis_testing::account(), &clock).await;
    // The second post of a process whose first post is lost, for an account without work.
    sqlx::query("insert into bare.wake_up values (gen_random_uuid(), 2, array[gen_random_uuid()], $1)")
        .bind(Clock::system().now())
        .execute(&mut database.connect().await)
        .await
        .unwrap();
    eventually("all accounts were looked at", async || queued(&database).await == 0).await;
}

#[tokio::test]
async fn partitions_that_were_lost_and_taken_again_are_looked_at_anew() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let db = open(&database, &clock);
    queue_silently(&database, &chassis_testing::account(), &clock).await;
    let _workers = working(&db, rarely_swept());
    settled(&database, &clock, &[64]).await;
    // Another replica holds all partitions for a moment, and work is queued then without a wake-up.
    let sql = "update bare.lease set owner = '00000000-0000-0000-0000-000000000001', fence = fence + 1";
    sqlx::raw_sql(sql).execute(&mut database.connect().await).await.unwrap();
    queue_silently(&database, &chassis_testing::account(), &clock).await;
    clock.advance(TimeDelta::seconds(16));
    eventually("it is found", async || queued(&database).await == 0).await;
}

/// A table in which the rows of some accounts are on an unreachable node: reading them fails as with Citus.
const PARTLY_AWAY: &str = "
    create table bare.away (account_id uuid primary key);
    create function bare.reach(uuid) returns boolean language plpgsql volatile as $$
    begin
        if exists (select from bare.away where account_id = $1) then
            raise 'connection to the remote node failed' using errcode = '08006';
        end if;
        return true;
    end $$;
    create view bare.spread as select * from bare.mail where bare.reach(account_id);";

#[tokio::test]
async fn with_a_node_away_the_accounts_on_others_are_served() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let db = open(&database, &clock);
    let mut connection = database.connect().await;
    sqlx::raw_sql(PARTLY_AWAY).execute(&mut connection).await.unwrap();
    let (away, near, waiting) =
        (chassis_testing::account(), chassis_testing::account(), chassis_testing::account());
    for account in [&away, &near, &waiting] {
        let sql = "insert into bare.known_account (account_id) values ($1)";
        sqlx::query(sql).bind(account.id).execute(&mut connection).await.unwrap();
    }
    sqlx::query("insert into bare.away values ($1)").bind(away.id).execute(&mut connection).await.unwrap();
    for account in [&away, &waiting] {
        queue_silently(&database, account, &clock).await;
    }
    let due = Due::new("spread work", "work.status = 'queued'", "work.next_at");
    let _workers = start(&db, due, rarely_swept());
    eventually("what waited elsewhere is done, though no sweep succeeds", async || {
        queued(&database).await == 1
    })
    .await;
    queue(&db, &near, TimeDelta::zero()).await;
    eventually("and what is new", async || queued(&database).await == 1).await;
    sqlx::raw_sql("delete from bare.away").execute(&mut connection).await.unwrap();
    eventually("the rest follows when the node is back", async || queued(&database).await == 0).await;
}

#[tokio::test]
async fn an_account_that_asked_for_a_pause_is_run_again_only_if_it_has_work_then() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let db = open(&database, &clock);
    let runs = Arc::new(AtomicUsize::default());
    let counted = Arc::clone(&runs);
    let due = Due::new("mail work", "work.status = 'queued'", "work.next_at");
    let worker = Worker::new("send", due, move |job: Job| {
        let counted = Arc::clone(&counted);
        async move {
            // Counted before the write, which the test waits for.
            counted.fetch_add(1, Ordering::SeqCst);
            job.write(&(), send).await?;
            Ok(Next::After(TimeDelta::hours(1)))
        }
    });
    let _workers = Workers::start(&db, vec![worker], rarely_swept());
    let (account, other) = (chassis_testing::account(), chassis_testing::account());
    queue(&db, &account, TimeDelta::zero()).await;
    eventually("the first is done", async || queued(&database).await == 0).await;
    queue(&db, &account, TimeDelta::zero()).await;
    queue(&db, &other, TimeDelta::zero()).await;
    eventually("another account is not paused", async || queued(&database).await == 1).await;
    clock.advance(TimeDelta::hours(1));
    eventually("what came in the pause is done after it", async || queued(&database).await == 0).await;
    clock.advance(TimeDelta::hours(1));
    let third = chassis_testing::account();
    queue(&db, &third, TimeDelta::zero()).await;
    eventually("a new one is done", async || queued(&database).await == 0).await;
    assert_eq!(runs.load(Ordering::SeqCst), 4, "nobody ran without work");
}

#[tokio::test]
async fn a_backlog_of_one_account_does_not_hold_up_the_others() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let db = open(&database, &clock);
    let (busy, quiet) = (chassis_testing::account(), chassis_testing::account());
    let never_done = busy.id;
    let due = Due::new("mail work", "work.status = 'queued'", IMMEDIATELY);
    let worker = Worker::new("send", due, move |job: Job| async move {
        if job.account_id() != never_done {
            job.write(&(), send).await?;
        }
        Ok(Next::Now)
    });
    let _workers = Workers::start(&db, vec![worker.concurrency(1)], rarely_swept());
    queue(&db, &busy, TimeDelta::zero()).await;
    queue(&db, &quiet, TimeDelta::zero()).await;
    eventually("the quiet one has its turn", async || queued(&database).await == 1).await;
}
