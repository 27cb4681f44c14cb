//! The list builder on real Postgres: pages, totals and filters agree with a plain query, at any offset.

#![allow(clippy::unwrap_used, reason = "a test stops where its fact is false")]

use chassis_base::paging::Page;
use chassis_base::{AccountId, Error};
use chassis_data::list::{List, Total};
use chassis_data::{Db, Tx};
use chassis_testing::TestDatabase;
use chassis_testing::bare::{database, open, write};
use chrono::{DateTime, TimeDelta, Utc};
use proto::Faults;
use sqlx::Connection;
use uuid::Uuid;

const ENTRIES: i64 = 5_000;

#[derive(sqlx::FromRow)]
struct Thing {
    id: Uuid,
}

/// Inserts entries of several days, many in the same millisecond, and as many of another account.
async fn filled() -> (TestDatabase, Db, AccountId) {
    let (database, clock) = (database().await, chassis_testing::clock());
    let mut connection = database.connect().await;
    sqlx::raw_sql(
        "create table bare.thing (account_id uuid, id uuid, created_at timestamptz, name text, primary key (account_id, id));
         create index on bare.thing (account_id, created_at desc, id desc)",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    connection.close().await.unwrap();
    let db = open(&database, &clock);
    let (mine, other) = (chassis_testing::account(), chassis_testing::account());
    for account in [&other, &mine] {
        write(&db, account, async |tx| insert(tx).await).await;
    }
    (database, db, mine.id)
}

async fn insert(tx: &mut Tx<'_>) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    tx.unaudited("things that nobody has");
    let times: Vec<DateTime<Utc>> = (0..ENTRIES).map(|n| now - TimeDelta::minutes(n / 7 * 11)).collect();
    let ids: Vec<Uuid> = times.iter().map(|_| tx.id()).collect();
    sqlx::query(
        "insert into bare.thing select $1, id, created_at, 'Thing ' || n
         from unnest($2::uuid[], $3::timestamptz[]) with ordinality as t (id, created_at, n)",
    )
    .bind(account)
    .bind(&ids)
    .bind(&times)
    .execute(tx.db())
    .await?;
    for time in times {
        tx.count("thing", time, 1);
    }
    Ok(())
}

async fn page(db: &Db, account: AccountId, number: i64, size: i64) -> (Vec<Uuid>, i64) {
    let list = List::new(account, "bare.thing", "id", Total::Counted("thing"));
    let page = Page::new(Some(number), Some(size));
    let (things, meta) = list.fetch::<Thing>(&mut db.acquire().await.unwrap(), page).await.unwrap();
    (things.into_iter().map(|thing| thing.id).collect(), meta.total)
}

#[tokio::test]
async fn every_page_is_its_part_of_the_list_also_deep_inside() {
    let (_database, db, account) = filled().await;
    let mut connection = db.acquire().await.unwrap();
    let all: Vec<Uuid> = sqlx::query_scalar(
        "select id from bare.thing where account_id = $1 order by created_at desc, id desc",
    )
    .bind(account)
    .fetch_all(&mut *connection)
    .await
    .unwrap();
    assert_eq!(i64::try_from(all.len()), Ok(ENTRIES));
    let mut seen = Vec::new();
    for number in 1..=(ENTRIES / 100) {
        let (ids, total) = page(&db, account, number, 100).await;
        assert_eq!(total, ENTRIES);
        seen.extend(ids);
    }
    assert!(seen == all, "the pages together are the list");
    assert_eq!(page(&db, account, 100, 49).await.0, all[99 * 49..100 * 49]);
    assert_eq!(page(&db, account, 5_000, 1).await.0, all[4_999..]);
    assert_eq!(page(&db, account, 5_001, 1).await, (Vec::new(), ENTRIES));
    assert_eq!(page(&db, account, i64::MAX, 100).await, (Vec::new(), ENTRIES));
}

#[tokio::test]
async fn filters_and_orders_hold_and_a_wrong_order_is_named() {
    let (_database, db, account) = filled().await;
    let mut faults = Faults::default();
    let mut list = List::new(account, "bare.thing", "id", Total::Matching);
    list.contains("lower(name)", "THING 49").sort(
        &[("created_at", "created_at"), ("name", "name")],
        "name",
        "asc",
        &mut faults,
    );
    list.between("created_at", None, Some(chassis_testing::moment()));
    assert!(faults.is_empty());
    let mut connection = db.acquire().await.unwrap();
    let (things, meta) = list.fetch::<Thing>(&mut connection, Page::new(None, Some(3))).await.unwrap();
    assert_eq!((things.len(), meta.total), (3, 1 + 10 + 100), "49, 490 to 499, 4900 to 4999");
    let names: Vec<String> = sqlx::query_scalar(
        "select name from bare.thing where account_id = $1 and id = any($2) order by name",
    )
    .bind(account)
    .bind(things.iter().map(|thing| thing.id).collect::<Vec<_>>())
    .fetch_all(&mut *connection)
    .await
    .unwrap();
    assert_eq!(names, ["Thing 49", "Thing 490", "Thing 4900"]);

    let mut list = List::new(account, "bare.thing", "id", Total::Matching);
    list.sort(&[("created_at", "created_at"), ("name", "name")], "price", "down", &mut faults);
    let places: Vec<(&str, &str)> =
        faults.entries().iter().map(|entry| (entry.pointer.as_str(), entry.detail.as_str())).collect();
    assert_eq!(
        places,
        [("/sort", "sort must be one of: created_at, name"), ("/order", "order must be asc or desc")]
    );
}

/// The total of a counted list after `narrow`.
async fn total(db: &Db, account: AccountId, narrow: impl FnOnce(&mut List<'_>)) -> i64 {
    let mut list = List::new(account, "bare.thing", "id", Total::Counted("thing"));
    narrow(&mut list);
    let mut connection = db.acquire().await.unwrap();
    let (_, meta) = list.fetch::<Thing>(&mut connection, Page::new(None, Some(1))).await.unwrap();
    meta.total
}

#[tokio::test]
async fn whatever_narrows_a_counted_list_gives_it_a_total_of_its_own() {
    let (_database, db, account) = filled().await;
    let asked_for_nothing = |list: &mut List<'_>| {
        list.only("name", None::<&str>);
        list.search("lower(name)", "");
        list.between("created_at", None::<DateTime<Utc>>, None);
    };
    assert_eq!(total(&db, account, asked_for_nothing).await, ENTRIES);
    let only = |list: &mut List<'_>| _ = list.only("name", Some("Thing 49"));
    assert_eq!(total(&db, account, only).await, 1);
    let search = |list: &mut List<'_>| _ = list.search("lower(name)", "THING 49");
    assert_eq!(total(&db, account, search).await, 1 + 10 + 100);
    let short_search = |list: &mut List<'_>| _ = list.search("lower(name)", "g 49");
    assert_eq!(total(&db, account, short_search).await, 1 + 10 + 100);
    let none_of_them = |list: &mut List<'_>| _ = list.any("id", &[]);
    assert_eq!(total(&db, account, none_of_them).await, 0);
    let since = |list: &mut List<'_>| _ = list.between("created_at", Some(chassis_testing::moment()), None);
    assert_eq!(total(&db, account, since).await, 7, "those of the last minute");
}
