//! Segments of lists and counters of filters on real Postgres: whatever is written while they are made, every page is its
//! part of the list, and every number is what it counts.

#![allow(clippy::unwrap_used, reason = "a test stops where its fact is false")]

use std::sync::atomic::{AtomicBool, Ordering};

use chassis_base::paging::Page;
use chassis_base::{Account, AccountId, Clock, Error};
use chassis_data::list::{List, Total};
use chassis_data::{Db, Listing, Tx};
use chassis_testing::bare::{database, open, write};
use chassis_testing::{TestDatabase, eventually};
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{AssertSqlSafe, Connection};
use uuid::Uuid;

const LIST: &str = "thing";
const STATUS: &str = "status";
/// Enough for several segments, and for one of the next level.
const ENTRIES: usize = 40_000;

#[derive(Clone, Debug, chassis_derive::FromRow)]
struct Thing {
    id: Uuid,
    created_at: DateTime<Utc>,
    status: String,
}

impl Thing {
    fn listing(&self) -> Listing {
        Listing::new(self.created_at, self.id).of(LIST).with(LIST, STATUS, &self.status)
    }
}

struct World {
    database: TestDatabase,
    clock: Clock,
    db: Db,
}

impl World {
    async fn new() -> Self {
        let (database, clock) = (database().await, chassis_testing::clock());
        let mut connection = database.connect().await;
        sqlx::raw_sql(
            "create table bare.thing (account_id uuid, id uuid, created_at timestamptz, status text,
                 primary key (account_id, id));
             create index on bare.thing (account_id, created_at desc, id desc);
             create index on bare.thing (account_id, status, created_at desc, id desc)",
        )
        .execute(&mut connection)
        .await
        .unwrap();
        connection.close().await.unwrap();
        let db = open(&database, &clock);
        Self { database, clock, db }
    }

    /// A page of the list, and the total. Asks for whatever preparation it needs.
    async fn page(&self, account: AccountId, status: Option<&str>, number: i64) -> (Vec<Uuid>, i64) {
        let mut list = List::new(account, "bare.thing", "id, created_at, status", Total::Counted(LIST));
        list.only_counted(STATUS, status);
        let page = Page::new(Some(number), Some(10));
        let read = async |connection: &mut sqlx::PgConnection| list.fetch::<Thing>(connection, page).await;
        let (things, meta) = self.db.read(read).await.unwrap();
        (things.into_iter().map(|thing| thing.id).collect(), meta.total)
    }

    async fn all(&self, account: AccountId, status: Option<&str>) -> Vec<Thing> {
        let sql = "select id, created_at, status from bare.thing
                   where account_id = $1 and ($2::text is null or status = $2) order by created_at desc, id desc";
        let query = sqlx::query_as(sql).bind(account).bind(status);
        query.fetch_all(&mut *self.db.acquire().await.unwrap()).await.unwrap()
    }

    /// Compares pages all over the list with a plain query.
    async fn assert_pages(&self, account: AccountId, status: Option<&str>) {
        let all: Vec<Uuid> = self.all(account, status).await.into_iter().map(|thing| thing.id).collect();
        let pages = all.len() / 10;
        for number in [1, 101, 250, pages / 3, pages / 2, pages - 5, pages, pages + 1, pages + 2] {
            let (ids, total) = self.page(account, status, i64::try_from(number).unwrap()).await;
            let (from, to) = ((number.max(1) - 1) * 10, number.max(1) * 10);
            let expected = &all[from.min(all.len())..to.min(all.len())];
            assert_eq!(usize::try_from(total), Ok(all.len()), "the total of {status:?}");
            assert_eq!(ids, expected, "page {number} of {status:?}");
        }
    }

    async fn count(&self, account: AccountId, sql: &str) -> i64 {
        let query = sqlx::query_scalar(AssertSqlSafe(sql)).bind(account);
        query.fetch_one(&mut *self.db.acquire().await.unwrap()).await.unwrap()
    }

    /// Compares every segment of every level, and every counter that is used, with the rows.
    async fn assert_numbers(&self, account: AccountId) {
        let rows = "from thing where account_id = $1
                        and (split_part(list, '/', 3) = '' or status = split_part(list, '/', 3))";
        let wrong_segments = format!(
            "select count(*) from (
                select *, lag(row(last_created_at, last_id)) over (partition by list, level
                    order by last_created_at, last_id) as after
                from list_segment where account_id = $1
             ) segment where entries <> (
                select count(*) {rows} and (created_at, id) <= (last_created_at, last_id)
                    and (after is null or row(created_at, id) > after))"
        );
        assert_eq!(self.count(account, &wrong_segments).await, 0, "wrong segments");
        let wrong_counters = format!(
            "select count(*) from (
                select list, sum(entries) as entries from total
                where account_id = $1 and bucket = '0001-01-01' group by list
             ) counter where entries <> (select count(*) {rows})
                and (list = 'thing' or list in (select list from prepared_list where account_id = $1))"
        );
        assert_eq!(self.count(account, &wrong_counters).await, 0, "wrong counters");
    }

    async fn segments(&self, account: AccountId) -> i64 {
        self.count(account, "select count(*) from list_segment where account_id = $1 and level = 0").await
    }

    /// Reads a deep page until the list has at least so many segments.
    async fn prepare(&self, account: AccountId, status: Option<&str>, segments: i64) {
        let list = status.map_or(LIST.to_owned(), |status| format!("{LIST}/{STATUS}/{status}"));
        let made = format!(
            "select count(*) from list_segment where account_id = $1 and level = 0 and list = '{list}'"
        );
        eventually("the list has its segments", async || {
            self.page(account, status, 350).await;
            self.count(account, &made).await >= segments
        })
        .await;
    }
}

async fn insert(tx: &mut Tx<'_>, things: &[Thing]) -> Result<(), Error> {
    let account = tx.account();
    tx.unaudited("things that nobody has");
    let ids: Vec<Uuid> = things.iter().map(|thing| thing.id).collect();
    let times: Vec<DateTime<Utc>> = things.iter().map(|thing| thing.created_at).collect();
    let states: Vec<&str> = things.iter().map(|thing| thing.status.as_str()).collect();
    sqlx::query("insert into bare.thing select $1, * from unnest($2::uuid[], $3::timestamptz[], $4::text[])")
        .bind(account)
        .bind(&ids)
        .bind(&times)
        .bind(&states)
        .execute(tx.db())
        .await?;
    for thing in things {
        tx.list(&thing.listing());
    }
    Ok(())
}

async fn remove(tx: &mut Tx<'_>, thing: &Thing) -> Result<(), Error> {
    let account = tx.account();
    tx.unaudited("things that nobody has");
    let sql = "delete from bare.thing where account_id = $1 and id = $2 returning id, created_at, status";
    let removed: Option<Thing> =
        sqlx::query_as(sql).bind(account).bind(thing.id).fetch_optional(tx.db()).await?;
    if let Some(removed) = removed {
        tx.unlist(&removed.listing());
    }
    Ok(())
}

async fn set_status(tx: &mut Tx<'_>, thing: &Thing, status: &str) -> Result<(), Error> {
    let account = tx.account();
    tx.unaudited("things that nobody has");
    let sql = "select id, created_at, status from bare.thing where account_id = $1 and id = $2 for update";
    let found: Option<Thing> =
        sqlx::query_as(sql).bind(account).bind(thing.id).fetch_optional(tx.db()).await?;
    let Some(before) = found else { return Ok(()) };
    let sql = "update bare.thing set status = $3 where account_id = $1 and id = $2";
    sqlx::query(sql).bind(account).bind(thing.id).bind(status).execute(tx.db()).await?;
    tx.relist(&before.listing(), &Thing { status: status.to_owned(), ..before.clone() }.listing());
    Ok(())
}

/// Numbers that look random, and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

/// A day of things, many in the same millisecond; most are open.
fn things(clock: &Clock, count: usize, dice: &mut Dice) -> Vec<Thing> {
    let thing = |_| {
        let minutes = i64::try_from(20 + dice.roll(300)).unwrap();
        let status = if dice.roll(5) == 0 { "done" } else { "open" }.to_owned();
        Thing { id: Uuid::new_v4(), created_at: clock.now() - TimeDelta::minutes(minutes), status }
    };
    (0..count).map(thing).collect()
}

async fn fill(world: &World, account: &Account, count: usize) -> Vec<Thing> {
    let things = things(&world.clock, count, &mut Dice(7));
    write(&world.db, account, async |tx| insert(tx, &things).await).await;
    things
}

#[tokio::test]
async fn every_page_is_its_part_of_the_list_whatever_is_added_and_removed() {
    let (world, account, mut dice) = (World::new().await, chassis_testing::account(), Dice(1));
    let id = account.id;
    let mut known = fill(&world, &account, ENTRIES).await;
    world.assert_pages(id, None).await;
    world.prepare(id, None, 39).await;
    world.prepare(id, Some("open"), 30).await;
    assert!(
        world.count(id, "select count(*) from list_segment where account_id = $1 and level = 1").await > 0
    );
    world.assert_numbers(id).await;
    for _ in 0..5 {
        // Old ones among the others, and new ones.
        let mut added = things(&world.clock, 300, &mut dice);
        for thing in added.iter_mut().take(20) {
            thing.created_at = world.clock.now();
        }
        write(&world.db, &account, async |tx| insert(tx, &added).await).await;
        known.extend(added);
        for _ in 0..15 {
            let removed = known.swap_remove(dice.roll(known.len()));
            write(&world.db, &account, async |tx| remove(tx, &removed).await).await;
            let moved = &known[dice.roll(known.len())];
            let status = if dice.roll(2) == 0 { "done" } else { "open" };
            write(&world.db, &account, async |tx| set_status(tx, moved, status).await).await;
        }
        world.clock.advance(TimeDelta::minutes(7));
        for status in [None, Some("open"), Some("done")] {
            world.assert_pages(id, status).await;
        }
        world.assert_numbers(id).await;
    }
}

#[tokio::test]
async fn a_segment_that_many_entries_were_added_to_is_split() {
    let (world, account) = (World::new().await, chassis_testing::account());
    fill(&world, &account, 5_000).await;
    world.prepare(account.id, None, 4).await;
    // All at one moment, before all others.
    let mut old = things(&world.clock, 6_000, &mut Dice(3));
    for thing in &mut old {
        thing.created_at = world.clock.now() - TimeDelta::days(3);
    }
    write(&world.db, &account, async |tx| insert(tx, &old).await).await;
    world.assert_pages(account.id, None).await;
    eventually("no segment is too long", async || {
        // A list for which there was nothing to do is left alone for a minute.
        world.clock.advance(TimeDelta::minutes(1));
        world.assert_pages(account.id, None).await;
        let long = "select count(*) from list_segment where account_id = $1 and level = 0 and entries > 2000";
        world.count(account.id, long).await == 0
    })
    .await;
    world.assert_numbers(account.id).await;
    assert!(world.segments(account.id).await >= 10);
}

#[tokio::test]
async fn segments_are_right_when_they_are_made_while_others_write_and_by_two_processes() {
    let world = World::new().await;
    let (mine, other) = (chassis_testing::account(), chassis_testing::account());
    let known = fill(&world, &mine, ENTRIES).await;
    fill(&world, &other, 3_500).await;
    let second = World {
        db: open(&world.database, &world.clock),
        clock: world.clock.clone(),
        database: database().await,
    };
    let is_done = AtomicBool::new(false);
    let writer = async |number: u64| {
        let mut dice = Dice(100 + number);
        while !is_done.load(Ordering::Relaxed) {
            let thing = &known[dice.roll(known.len())];
            match dice.roll(3) {
                0 => write(&world.db, &mine, async |tx| remove(tx, thing).await).await,
                1 => write(&world.db, &mine, async |tx| set_status(tx, thing, "done").await).await,
                _ => {
                    let added = things(&world.clock, 3, &mut dice);
                    write(&world.db, &mine, async |tx| insert(tx, &added).await).await;
                }
            }
        }
    };
    let reader = async {
        for world in [&world, &second] {
            world.page(mine.id, None, 2_000).await;
            world.page(mine.id, Some("open"), 1_000).await;
            world.page(other.id, None, 300).await;
        }
        world.prepare(mine.id, None, 35).await;
        world.prepare(mine.id, Some("open"), 25).await;
        world.prepare(mine.id, Some("done"), 3).await;
        world.prepare(other.id, None, 3).await;
        is_done.store(true, Ordering::Relaxed);
    };
    tokio::join!(writer(1), writer(2), writer(3), reader);
    for account in [mine.id, other.id] {
        world.assert_numbers(account).await;
        world.assert_pages(account, None).await;
        world.assert_pages(account, Some("open")).await;
    }
}

#[tokio::test]
async fn what_a_program_of_the_release_before_writes_is_noticed() {
    let (world, account) = (World::new().await, chassis_testing::account());
    let known = fill(&world, &account, 6_000).await;
    world.prepare(account.id, None, 5).await;
    world.prepare(account.id, Some("open"), 3).await;
    // It keeps the counter of the list, and neither segments nor the counters of filters.
    let mut connection = world.database.connect().await;
    let removed: Vec<Uuid> = known.iter().step_by(7).map(|thing| thing.id).collect();
    let statements = [
        "delete from bare.thing where account_id = $1 and id = any($2)",
        "update bare.total set entries = entries - cardinality($2::uuid[])
         where account_id = $1 and list = 'thing' and bucket = '0001-01-01' and slot = 0",
        "insert into bare.audit (account_id, id, at, actor, request_id, method, entity_type, entity_id, message)
         select $1, id, '2026-11-15', '', '', '', 'thing', '', '' from unnest($2::uuid[]) removed (id)",
    ];
    let audited: Vec<Uuid> = removed.iter().map(|_| world.clock.id()).collect();
    for (statement, ids) in statements.into_iter().zip([&removed, &removed, &audited]) {
        sqlx::query(statement).bind(account.id).bind(ids).execute(&mut connection).await.unwrap();
    }
    for status in [None, Some("open")] {
        world.assert_pages(account.id, status).await;
    }
    // Nothing is prepared while such a program may still run.
    assert_eq!(world.page(account.id, None, 400).await.0.len(), 10);
    world.clock.advance(TimeDelta::minutes(10));
    eventually("the lists are prepared anew", async || {
        for status in [None, Some("open")] {
            world.assert_pages(account.id, status).await;
        }
        let prepared = "select count(*) from prepared_list prepared where account_id = $1 and not exists (
                            select from audit where audit.account_id = $1 and audit.id > prepared.seen)";
        world.count(account.id, prepared).await == 2
    })
    .await;
    world.assert_numbers(account.id).await;
}
