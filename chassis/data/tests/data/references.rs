//! References between services over real gRPC: a fault names each record that does not exist, and an unreachable
//! service fails the call.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::sync::Arc;

use chassis_base::{Clock, Error};
use chassis_data::references::Referable;
use chassis_rpc::references::{Kind, Lookup, MAX_LISTED};
use chassis_service::{Runtime, Service};
use chassis_testing::bare::Bare;
use chassis_testing::{Started, TestDatabase};
use proto::At;
use sqlx::migrate::Migrator;
use tonic::service::RoutesBuilder;
use uuid::Uuid;

/// A service with books, some of them lent, in the schema of the bare service.
struct Library;

#[tonic::async_trait]
impl Service for Library {
    const NAME: &'static str = "bare";
    const ABOUT: &'static str = "For tests";

    fn migrations() -> &'static Migrator {
        Bare::migrations()
    }

    async fn new(_: &Runtime) -> Result<Self, String> {
        Ok(Self)
    }

    fn routes(self: &Arc<Self>, _: &mut RoutesBuilder) {}

    fn referables() -> &'static [Referable] {
        &[
            Referable { kind: "book", table: "bare.book", condition: "true" },
            Referable { kind: "loan", table: "bare.book", condition: "is_lent" },
        ]
    }
}

const BOOK: Kind = Kind { service: "bare", name: "book" };
const LOAN: Kind = Kind { service: "bare", name: "loan" };

async fn library(clock: &Clock) -> (TestDatabase, Started) {
    let database = chassis_testing::bare::database().await;
    let sql = "create table bare.book (account_id uuid, id uuid, is_lent boolean, \
               created_at timestamptz not null default '2026-11-15T11:00:00Z', primary key (account_id, id))";
    sqlx::query(sql).execute(&mut database.connect().await).await.unwrap();
    let service = chassis_testing::start::<Library>(database.url(), clock).await;
    (database, service)
}

async fn add(database: &TestDatabase, account: &chassis_base::Account, is_lent: bool) -> String {
    let id = Uuid::new_v4();
    let sql = "insert into bare.book (account_id, id, is_lent) values ($1, $2, $3)";
    let insert = sqlx::query(sql).bind(account.id).bind(id).bind(is_lent);
    insert.execute(&mut database.connect().await).await.unwrap();
    id.to_string()
}

#[tokio::test]
async fn each_reference_to_what_is_not_there_is_named() {
    let clock = chassis_testing::clock();
    let (database, library) = library(&clock).await;
    let (account, other) = (chassis_testing::account(), chassis_testing::account());
    let [kept, lent] = [add(&database, &account, false).await, add(&database, &account, true).await];
    let strange = add(&database, &other, true).await;
    let peers = format!("bare={}", library.url());
    let asking = chassis_testing::start_with::<Bare>(database.url(), &clock, &["--peers", &peers]).await;
    let context = chassis_testing::bare::context(&account, &clock);
    let missing = async |lookups: &[(&str, Kind, &str)]| {
        let places: Vec<At<'_>> = lookups.iter().map(|(name, ..)| At::ROOT.name(name)).collect();
        let lookups = lookups.iter().zip(&places).map(|((_, kind, id), at)| Lookup { kind: *kind, at, id });
        let lookups: Vec<Lookup<'_>> = lookups.collect();
        let faults = asking.runtime.references().missing(&context, &lookups).await.unwrap();
        faults.entries().iter().map(|fault| fault.pointer.clone()).collect::<Vec<_>>()
    };
    let all = [
        ("kept", BOOK, kept.as_str()),
        ("lent", LOAN, &lent),
        ("lent_book", BOOK, &lent),
        ("none", BOOK, ""),
        ("not_lent", LOAN, &kept),
        ("strange", BOOK, &strange),
        ("odd", BOOK, "x"),
        ("unknown", BOOK, "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05"),
    ];
    assert_eq!(missing(&all).await, ["/not_lent", "/strange", "/odd", "/unknown"]);
    assert_eq!(missing(&all[..4]).await, Vec::<String>::new());
}

#[tokio::test]
async fn all_records_of_a_kind_are_listed_in_order_page_by_page() {
    let clock = chassis_testing::clock();
    let (database, library) = library(&clock).await;
    let (account, other) = (chassis_testing::account(), chassis_testing::account());
    let sql = "insert into bare.book (account_id, id, is_lent) \
               select $1, gen_random_uuid(), number <= 3 from generate_series(1, $2) number";
    for (account, count) in [(&account, 1001), (&other, 1)] {
        let insert = sqlx::query(sql).bind(account.id).bind(count);
        insert.execute(&mut database.connect().await).await.unwrap();
    }
    let peers = format!("bare={}", library.url());
    let asking = chassis_testing::start_with::<Bare>(database.url(), &clock, &["--peers", &peers]).await;
    let references = asking.runtime.references();
    let first = references.list(&account, BOOK, Uuid::nil()).await.unwrap();
    assert_eq!(first.len(), MAX_LISTED);
    let second = references.list(&account, BOOK, first[MAX_LISTED - 1].0).await.unwrap();
    assert_eq!(second.len(), 1);
    let ids: Vec<Uuid> = first.iter().chain(&second).map(|(id, _)| *id).collect();
    assert!(ids.is_sorted_by(|one, next| one < next));
    assert_eq!(first[0].1.to_rfc3339(), "2026-11-15T11:00:00+00:00");
    assert_eq!(references.list(&account, LOAN, Uuid::nil()).await.unwrap().len(), 3);
    let unknown = Kind { service: "bare", name: "shelf" };
    references.list(&account, unknown, Uuid::nil()).await.unwrap_err();
}

#[tokio::test]
async fn a_service_that_is_away_makes_the_request_come_back_later() {
    let clock = chassis_testing::clock();
    let database = chassis_testing::bare::database().await;
    let flags = ["--peers", "bare=http://127.0.0.1:1"];
    let asking = chassis_testing::start_with::<Bare>(database.url(), &clock, &flags).await;
    let context = chassis_testing::bare::context(&chassis_testing::account(), &clock);
    let at = At::ROOT.name("book_id");
    let id = Uuid::new_v4().to_string();
    let lookups = |id| [Lookup { kind: BOOK, at: &at, id }];
    let refused = asking.runtime.references().missing(&context, &lookups(&id)).await.unwrap_err();
    assert!(matches!(refused, Error::Peer(status) if status.code() == tonic::Code::Unavailable));
    let unasked = asking.runtime.references().missing(&context, &lookups("")).await.unwrap();
    assert!(unasked.is_empty(), "nobody is asked for nothing");
}
