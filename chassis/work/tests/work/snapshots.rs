//! Comparing logs with records in the background, on real Postgres: what a log lacks is logged once, whatever interrupts it.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::sync::{Arc, Mutex};

use chassis_base::time::timestamp;
use chassis_base::{Account, Clock, Error};
use chassis_data::log::snapshot::{Key, RecordTable, Records, SharedRecords, Shown, advance, resume};
use chassis_data::{Db, Tx};
use chassis_testing::bare::{database, open};
use chassis_testing::{TestDatabase, eventually, undelivered};
use chassis_work::snapshot;
use chassis_work::worker::Workers;
use chrono::{DateTime, TimeDelta, Utc};
use prost::Message as _;
use proto::crm::DealSource;
use sqlx::AssertSqlSafe;

const TABLES: &[RecordTable] = &[RecordTable::new("thing", "bare.thing", Key::Text("name"))];

/// Things, and which of them were shown.
#[derive(Default)]
struct Things {
    shown: Mutex<Vec<String>>,
}

#[tonic::async_trait]
impl Records for Things {
    fn tables(&self) -> &'static [RecordTable] {
        TABLES
    }

    async fn show(
        &self,
        tx: &mut Tx<'_>,
        kind: &str,
        ids: &[String],
        shown: &mut Shown,
    ) -> Result<(), Error> {
        assert_eq!(kind, "thing");
        self.shown.lock().unwrap().extend(ids.iter().cloned());
        let account = tx.account();
        let things: Vec<(String, i32, i64, DateTime<Utc>)> = sqlx::query_as(
            "select name, position, version, updated_at from bare.thing where account_id = $1 and name = any($2)",
        )
        .bind(account)
        .bind(ids)
        .fetch_all(tx.db())
        .await?;
        for (name, order, version, updated_at) in things {
            let updated_at = Some(timestamp(updated_at));
            shown.add(name.clone(), &DealSource { name, order, version, updated_at });
        }
        Ok(())
    }
}

/// An entry of the log: the record, its version, its change and its image.
type Entry = (String, i64, String, Option<Vec<u8>>);

struct World {
    database: TestDatabase,
    clock: Clock,
    things: Arc<Things>,
}

impl World {
    async fn new() -> Self {
        let world =
            Self { database: database().await, clock: chassis_testing::clock(), things: Arc::default() };
        let table = "create table bare.thing (account_id uuid not null, name text collate \"C\" not null, \
                     position integer not null, version bigint not null default 1, updated_at timestamptz not null, \
                     primary key (account_id, name))";
        sqlx::raw_sql(table).execute(&mut world.database.connect().await).await.unwrap();
        world
    }

    fn records(&self) -> SharedRecords {
        let things: Arc<Things> = Arc::clone(&self.things);
        SharedRecords::new(things)
    }

    fn db(&self) -> Db {
        open(&self.database, &self.clock)
    }

    fn work(&self) -> Workers {
        let workers = vec![snapshot::worker(self.records())];
        Workers::start(&self.db(), workers, chassis_testing::timing())
    }

    /// An account with this many things, as a program that knows no log has stored them.
    async fn account(&self, things: i32) -> Account {
        let (account, mut connection) = (chassis_testing::account(), self.database.connect().await);
        sqlx::query(
            "insert into bare.account values ($1, 'Bakery', 'NL', 'Europe/Amsterdam', 'EUR', $2, $2)",
        )
        .bind(account.id)
        .bind(self.clock.now())
        .execute(&mut connection)
        .await
        .unwrap();
        sqlx::query(
            "insert into bare.thing (account_id, name, position, updated_at)
             select $1, 'thing ' || lpad(number::text, 6, '0'), number, $2 from generate_series(1, $3) number",
        )
        .bind(account.id)
        .bind(self.clock.now())
        .bind(things)
        .execute(&mut connection)
        .await
        .unwrap();
        account
    }

    async fn run(&self, account: &Account, sql: &str) {
        let query = sqlx::query(AssertSqlSafe(sql.to_owned())).bind(account.id);
        query.execute(&mut self.database.connect().await).await.unwrap();
    }

    /// Writes to `audit`, as programs of the release before do.
    async fn audit(&self, account: &Account) {
        sqlx::query("insert into bare.audit values ($1, $2, $3, 'key', '', 'test', 'thing', 'x', '', null)")
            .bind(account.id)
            .bind(self.clock.id())
            .bind(self.clock.now())
            .execute(&mut self.database.connect().await)
            .await
            .unwrap();
    }

    async fn entries(&self, account: &Account) -> Vec<Entry> {
        sqlx::query_as(
            "select record_id, version, change, image from bare.log where account_id = $1 order by record_id, version",
        )
        .bind(account.id)
        .fetch_all(&mut self.database.connect().await)
        .await
        .unwrap()
    }

    /// Whether a pass through the account has ended, and none is under way.
    async fn is_done(&self, account: &Account) -> bool {
        let sql = "select exists (select from bare.snapshot where account_id = $1 and kind is null)";
        let query = sqlx::query_scalar(sql).bind(account.id);
        query.fetch_one(&mut self.database.connect().await).await.unwrap()
    }
}

fn source(entry: &Entry) -> DealSource {
    DealSource::decode(entry.3.as_deref().unwrap()).unwrap()
}

#[tokio::test]
async fn records_without_entries_are_logged_once_as_they_are_and_tell_no_event() {
    let world = World::new().await;
    let account = world.account(120).await;
    let workers = world.work();
    eventually("the log has all", async || world.is_done(&account).await).await;
    workers.stop(std::time::Duration::from_secs(10)).await;
    let entries = world.entries(&account).await;
    assert_eq!(entries.len(), 120);
    for (number, entry) in (1..).zip(&entries) {
        let shown = source(entry);
        assert_eq!((entry.1, entry.2.as_str()), (1, "created"));
        assert_eq!((shown.order, shown.version, &shown.name), (number, 1, &entry.0));
    }
    assert_eq!(undelivered(&world.database, "bare").await, 0, "all have positions");
    let events: i64 = sqlx::query_scalar("select count(*) from bare.log where event is not null")
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap();
    assert_eq!(events, 0);
    // Once more: there is nothing to log.
    let db = world.db();
    while !db.record(&account, &world.records(), advance).await.unwrap().is_done {}
    assert_eq!(world.entries(&account).await, entries);
}

#[tokio::test]
async fn what_the_release_before_has_changed_and_removed_is_logged_when_its_audit_shows_it() {
    let world = World::new().await;
    let account = world.account(3).await;
    let workers = world.work();
    eventually("the log has all", async || world.is_done(&account).await).await;
    world.run(&account, "update bare.thing set position = 9 where account_id = $1 and position = 1").await;
    world.run(&account, "delete from bare.thing where account_id = $1 and position = 2").await;
    world.audit(&account).await;
    world.clock.advance(TimeDelta::hours(2));
    eventually("it is logged", async || world.entries(&account).await.len() == 5).await;
    eventually("the pass ends", async || world.is_done(&account).await).await;
    workers.stop(std::time::Duration::from_secs(10)).await;
    let entries = world.entries(&account).await;
    let changes: Vec<(&str, i64, &str)> =
        entries.iter().map(|entry| (entry.0.as_str(), entry.1, entry.2.as_str())).collect();
    let expected = [
        ("thing 000001", 1, "created"),
        ("thing 000001", 2, "updated"),
        ("thing 000002", 1, "created"),
        ("thing 000002", 2, "deleted"),
        ("thing 000003", 1, "created"),
    ];
    assert_eq!(changes, expected);
    assert_eq!((source(&entries[1]).order, source(&entries[1]).version), (9, 2), "as it is stored now");
    let sql = "select version from bare.thing where account_id = $1 and position = 9";
    let stored: i64 = sqlx::query_scalar(sql)
        .bind(account.id)
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap();
    assert_eq!(stored, 2);
}

#[tokio::test]
async fn a_pass_that_was_interrupted_goes_on_where_it_was() {
    let world = World::new().await;
    let account = world.account(130).await;
    let first = world.db();
    assert!(!first.record(&account, &world.records(), advance).await.unwrap().is_done);
    drop(first);
    assert_eq!(world.entries(&account).await.len(), 50, "a page was committed");
    let second = world.db();
    while !second.record(&account, &world.records(), resume).await.unwrap().is_done {}
    let mut shown = world.things.shown.lock().unwrap().clone();
    shown.sort_unstable();
    shown.dedup();
    assert_eq!((shown.len(), world.things.shown.lock().unwrap().len()), (130, 130), "each was compared once");
    assert_eq!(world.entries(&account).await.len(), 130);
    // Nothing is under way any more.
    let end = second.record(&account, &world.records(), resume).await.unwrap();
    assert_eq!((end.logged, end.is_done), (130, true));
}

#[tokio::test]
async fn accounts_with_many_records_do_not_hold_up_another() {
    let world = World::new().await;
    let mut large = Vec::new();
    for _ in 0..3 {
        large.push(world.account(4000).await);
    }
    let small = world.account(1).await;
    let workers = world.work();
    eventually("the small one is done", async || world.is_done(&small).await).await;
    let mut waiting = 0;
    for account in &large {
        waiting += usize::from(!world.is_done(account).await);
    }
    assert!(waiting > 0, "the small one had to wait for all others");
    workers.stop(std::time::Duration::from_secs(10)).await;
}

#[tokio::test]
async fn an_account_that_was_compared_is_not_due_until_somebody_writes_without_a_log() {
    let world = World::new().await;
    let account = world.account(1).await;
    let workers = world.work();
    eventually("the log has all", async || world.is_done(&account).await).await;
    let shown = world.things.shown.lock().unwrap().len();
    // Another account shows that the worker has looked.
    world.clock.advance(TimeDelta::days(1));
    let other = world.account(1).await;
    world.clock.advance(TimeDelta::days(1));
    eventually("the other is compared", async || world.is_done(&other).await).await;
    workers.stop(std::time::Duration::from_secs(10)).await;
    assert_eq!(world.things.shown.lock().unwrap().len(), shown + 1);
}
