//! The list builder on real Postgres: pages, totals and filters agree with a plain query, at any offset.

#![allow(clippy::unwrap_used, reason = "a test stops where its fact is false")]

use chassis_base::paging::Page;
use chassis_base::{Account, AccountId, Error};
use chassis_data::list::{Fields, List, Selection, Total};
use chassis_data::{Db, Listing, Tx};
use chassis_testing::TestDatabase;
use chassis_testing::bare::{database, open, write};
use chrono::{DateTime, TimeDelta, Utc};
use proto::work::ListTasksRequest;
use sqlx::Connection;
use uuid::Uuid;

/// More than a list sorts when its bounds leave only a few.
const ENTRIES: i64 = 6_000;

#[derive(chassis_derive::FromRow)]
struct Thing {
    id: Uuid,
}

/// Inserts entries of several days, many in the same millisecond, and as many of another account. Their last changes are
/// in another order than their creation, and many of these are in the same millisecond as well.
async fn filled() -> (TestDatabase, Db, AccountId) {
    let (database, clock) = (database().await, chassis_testing::clock());
    let mut connection = database.connect().await;
    sqlx::raw_sql(
        "create table bare.thing (account_id uuid, id uuid, created_at timestamptz, updated_at timestamptz, name text,
             primary key (account_id, id));
         create index on bare.thing (account_id, created_at desc, id desc);
         create index on bare.thing (account_id, updated_at desc, id desc)",
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
        "insert into bare.thing select $1, id, created_at, created_at + n % 13 * interval '1 day', 'Thing ' || n
         from unnest($2::uuid[], $3::timestamptz[]) with ordinality as t (id, created_at, n)",
    )
    .bind(account)
    .bind(&ids)
    .bind(&times)
    .execute(tx.db())
    .await?;
    for (time, id) in times.into_iter().zip(ids) {
        tx.list(&Listing::new(time, id).of("thing"));
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
    assert_eq!(page(&db, account, ENTRIES, 1).await.0, all[5_999..]);
    assert_eq!(page(&db, account, ENTRIES + 1, 1).await, (Vec::new(), ENTRIES));
    assert_eq!(page(&db, account, i64::MAX, 100).await, (Vec::new(), ENTRIES));
}

/// What a request selects, with the fields that every list has and `name`.
const FIELDS: Fields = Fields::with_sorts(&[("name", "name")]);

fn selection(account: AccountId, request: &ListTasksRequest) -> Selection {
    Selection::new(&Account::unknown(account), request)
}

fn sorted(sort: &str, order: &str) -> ListTasksRequest {
    ListTasksRequest { sort: sort.into(), order: order.into(), ..ListTasksRequest::default() }
}

/// A page of what a request selects, and the total.
async fn selected(db: &Db, account: AccountId, request: &ListTasksRequest, page: Page) -> (Vec<Uuid>, i64) {
    let mut list = List::new(account, "bare.thing", "id", Total::Counted("thing"));
    list.select(&selection(account, request), &FIELDS).unwrap();
    let (things, meta) = list.fetch::<Thing>(&mut db.acquire().await.unwrap(), page).await.unwrap();
    (things.into_iter().map(|thing| thing.id).collect(), meta.total)
}

#[tokio::test]
async fn pages_by_a_time_neither_repeat_nor_skip_an_entry_in_either_direction() {
    let (_database, db, account) = filled().await;
    let since = chassis_testing::moment() - TimeDelta::days(3);
    for sort in ["created_at", "updated_at"] {
        for order in ["asc", "desc"] {
            // All of them, and those since a moment of the column that they are ordered by.
            for since in [None, Some(since)] {
                let mut request = sorted(sort, order);
                let from = since.map(|since| since.to_rfc3339()).unwrap_or_default();
                *(if sort == "created_at" { &mut request.created_from } else { &mut request.updated_from }) =
                    from;
                let all: Vec<Uuid> = sqlx::query_scalar(sqlx::AssertSqlSafe(format!(
                    "select id from bare.thing where account_id = $1 and ($2::timestamptz is null or {sort} >= $2) \
                     order by {sort} {order}, id {order}"
                )))
                .bind(account)
                .bind(since)
                .fetch_all(&mut *db.acquire().await.unwrap())
                .await
                .unwrap();
                assert!(all.len() > 2_500 && (since.is_none() || all.len() < 6_000), "{}", all.len());
                let total = i64::try_from(all.len()).unwrap();
                let mut seen = Vec::new();
                for number in 1..=(total / 100 + 1) {
                    let page = Page::new(Some(number), Some(100));
                    let (ids, counted) = selected(&db, account, &request, page).await;
                    assert_eq!(counted, total, "page {number} by {sort} {order} since {since:?}");
                    seen.extend(ids);
                }
                assert!(seen == all, "the pages by {sort} {order} since {since:?} together are the list");
            }
        }
    }
}

#[tokio::test]
async fn bounds_of_a_time_that_the_list_is_not_ordered_by_leave_the_same_order_for_few_and_for_many() {
    let (_database, db, account) = filled().await;
    let mut totals = Vec::new();
    for since in [TimeDelta::days(9), TimeDelta::days(-4)].map(|by| chassis_testing::moment() + by) {
        let request = ListTasksRequest { updated_from: since.to_rfc3339(), ..ListTasksRequest::default() };
        let all: Vec<Uuid> = sqlx::query_scalar(
            "select id from bare.thing where account_id = $1 and updated_at >= $2 order by created_at desc, id desc",
        )
        .bind(account)
        .bind(since)
        .fetch_all(&mut *db.acquire().await.unwrap())
        .await
        .unwrap();
        for number in [1, 2, all.len() / 100, all.len() / 100 + 1] {
            let page = Page::new(i64::try_from(number).ok(), Some(100));
            let (ids, total) = selected(&db, account, &request, page).await;
            assert_eq!(usize::try_from(total), Ok(all.len()));
            assert_eq!(ids, all[(number - 1) * 100..(number * 100).min(all.len())], "page {number}");
        }
        totals.push(all.len());
    }
    assert!(totals[0] > 200 && totals[0] < 5_000 && totals[1] > 5_000, "{totals:?}");
}

#[tokio::test]
async fn filters_and_orders_hold_and_a_wrong_order_is_named() {
    let (_database, db, account) = filled().await;
    let mut list = List::new(account, "bare.thing", "id", Total::Matching);
    list.contains("lower(name)", "THING 49");
    list.select(&selection(account, &sorted("name", "asc")), &FIELDS).unwrap();
    list.between("created_at", None, Some(chassis_testing::moment()));
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
    let refused = list.select(&selection(account, &sorted("price", "down")), &FIELDS).err().unwrap();
    let Error::Invalid(faults) = refused else { panic!("{refused:?}") };
    let places: Vec<(&str, &str)> =
        faults.entries().iter().map(|entry| (entry.pointer.as_str(), entry.detail.as_str())).collect();
    assert_eq!(
        places,
        [
            ("/sort", "sort must be one of: created_at, updated_at, name"),
            ("/order", "order must be asc or desc")
        ]
    );
}

#[tokio::test]
async fn a_list_of_ids_has_these_and_a_text_that_is_not_an_id_matches_nothing() {
    let (_database, db, account) = filled().await;
    let (newest, _) = page(&db, account, 1, 3).await;
    let of = |ids: &[&str]| ListTasksRequest {
        id: ids.iter().map(|id| (*id).to_owned()).collect(),
        ..ListTasksRequest::default()
    };
    let (first, last) = (newest[0].to_string(), newest[2].to_string());
    let few = Page::new(None, None);
    assert_eq!(
        selected(&db, account, &of(&[&last, "x", &first]), few).await,
        (vec![newest[0], newest[2]], 2)
    );
    assert_eq!(selected(&db, account, &of(&["x"]), few).await, (Vec::new(), 0));
    assert_eq!(selected(&db, account, &of(&[]), few).await.1, ENTRIES);
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

#[tokio::test]
async fn a_row_counts_with_the_bytes_of_all_its_values() {
    let database = database().await;
    let mut connection = database.connect().await;
    for (columns, least) in [
        ("null::text, repeat('a', 1000), null::text, repeat('b', 500), null::text", 1500),
        ("repeat('a', 1000), 1::bigint", 1008),
        ("null::text", 0),
    ] {
        let row =
            sqlx::query(sqlx::AssertSqlSafe(format!("select {columns}"))).fetch_one(&mut connection).await;
        let row = row.unwrap();
        let bytes = chassis_data::PageBytes::new(chassis_testing::account().id).add(&row).unwrap();
        // Each value has its length before it.
        assert!((least..=least + 4 * sqlx::Row::len(&row)).contains(&bytes), "{columns}: {bytes}");
    }
    connection.close().await.unwrap();
}
