//! Lists and filters whose counters came later than their records.

#![allow(clippy::unwrap_used, reason = "a test stops where its fact is false")]

use chassis_base::paging::Page;
use chassis_base::{Account, AccountId, Error};
use chassis_data::list::{Fields, List, Selection, Total};
use chassis_data::{Db, Listing, Tx};
use chassis_testing::bare::{database, open, write};
use chassis_testing::{TestDatabase, eventually};
use chrono::{DateTime, Utc};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

const LIST: &str = "thing";
const STATUS: &str = "status";

#[derive(Clone, Copy, Debug, chassis_derive::FromRow)]
struct Thing {
    id: Uuid,
    created_at: DateTime<Utc>,
    done_at: Option<DateTime<Utc>>,
}

impl Thing {
    fn listing(&self) -> Listing {
        let status = if self.done_at.is_some() { "done" } else { "open" };
        Listing::new(self.created_at, self.id).of_prepared(LIST).with(LIST, STATUS, status)
    }
}

struct World {
    _database: TestDatabase,
    db: Db,
}

impl World {
    /// With three things that no counter counts, one of them done.
    async fn new(account: &Account) -> Self {
        let (database, clock) = (database().await, chassis_testing::clock());
        sqlx::raw_sql(
            "create table bare.thing (account_id uuid, id uuid, created_at timestamptz, done_at timestamptz,
                 primary key (account_id, id))",
        )
        .execute(&mut database.connect().await)
        .await
        .unwrap();
        let world = Self { db: open(&database, &clock), _database: database };
        for is_done in [false, true, false] {
            world.add(account, is_done, async |_, _| Ok(())).await;
        }
        world
    }

    async fn add(
        &self,
        account: &Account,
        is_done: bool,
        list: impl AsyncFn(&mut Tx<'_>, &Thing) -> Result<(), Error>,
    ) {
        write(&self.db, account, async |tx| {
            let now = tx.now();
            let thing = Thing { id: tx.id(), created_at: now, done_at: is_done.then_some(now) };
            let account = tx.account();
            tx.unaudited("things that nobody has");
            sqlx::query("insert into bare.thing values ($1, $2, $3, $4)")
                .bind(account)
                .bind(thing.id)
                .bind(thing.created_at)
                .bind(thing.done_at)
                .execute(tx.db())
                .await?;
            list(tx, &thing).await
        })
        .await;
    }

    async fn total(&self, account: AccountId, status: Option<&str>) -> i64 {
        let mut list = List::new(account, "bare.thing", "id, created_at, done_at", Total::Prepared(LIST));
        match status {
            Some("done") => list.only_counted_where(STATUS, "done", "done_at is not null"),
            Some("open") => list.only_counted_where(STATUS, "open", "done_at is null"),
            // Nothing is of another status.
            _ => list.only_counted("id", status.map(|_| Uuid::nil())),
        };
        let page = Page::new(None, None);
        let read = async |connection: &mut sqlx::PgConnection| list.fetch::<Thing>(connection, page).await;
        let (things, meta) = self.db.read(read).await.unwrap();
        assert!(meta.total >= i64::try_from(things.len()).unwrap());
        meta.total
    }

    async fn prepared(&self, account: AccountId) -> Vec<String> {
        let sql = "select list from prepared_list where account_id = $1 order by list";
        let query = sqlx::query_scalar(AssertSqlSafe(sql)).bind(account);
        query.fetch_all(&mut *self.db.acquire().await.unwrap()).await.unwrap()
    }
}

#[tokio::test]
async fn rows_are_counted_until_the_counters_of_a_list_and_its_filters_are_prepared() {
    let account = chassis_testing::account();
    let (world, id) = (World::new(&account).await, account.id);
    assert_eq!(world.total(id, Some("missing")).await, 0);
    let counters = ["thing", "thing/status/done", "thing/status/open"];
    eventually("the counters are prepared", async || {
        let totals = [None, Some("done"), Some("open")].map(|status| world.total(id, status));
        let totals: Vec<i64> = futures::future::join_all(totals).await;
        assert_eq!(totals, [3, 1, 2]);
        world.prepared(id).await.len() >= counters.len()
    })
    .await;
    assert_eq!(world.prepared(id).await, counters, "what matches nothing has no counter");
    world
        .add(&account, true, async |tx, thing| {
            tx.list(&thing.listing());
            Ok(())
        })
        .await;
    assert_eq!((world.total(id, None).await, world.total(id, Some("done")).await), (4, 2));
    // The totals are those of the counters, which do not see this.
    let sql = "delete from bare.thing where account_id = $1";
    sqlx::query(sql).bind(id).execute(&mut *world.db.acquire().await.unwrap()).await.unwrap();
    assert_eq!((world.total(id, None).await, world.total(id, Some("open")).await), (4, 2));
    assert_eq!(world.total(chassis_testing::account().id, None).await, 0);
}

/// A look-up finds few rows as a rule, and pages stay right if it finds many.
#[tokio::test]
async fn looked_up_rows_are_pages_in_the_order_of_the_list() {
    let account = chassis_testing::account();
    let (world, id) = (World::new(&account).await, account.id);
    let mut seen = Vec::new();
    for number in 1..=3 {
        let mut list = List::new(id, "bare.thing", "id, created_at, done_at", Total::Prepared(LIST));
        list.look_up(|values| format!("created_at >= {}", values.bind(DateTime::UNIX_EPOCH)));
        list.select(&Selection::default(), &Fields { updated_at: "created_at", ..Fields::TIMES }).unwrap();
        let page = Page::new(Some(number), Some(1));
        let read = async |connection: &mut sqlx::PgConnection| list.fetch::<Thing>(connection, page).await;
        let (things, meta) = world.db.read(read).await.unwrap();
        assert_eq!(meta.total, 3);
        seen.extend(things.into_iter().map(|thing| thing.id));
    }
    let mut newest = seen.clone();
    newest.sort_unstable_by(|one, other| other.cmp(one));
    assert_eq!((seen.len(), seen), (3, newest));
}
