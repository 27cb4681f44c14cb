//! Withdrawals: a write that refers to a record of another service is counted before the record is removed, or refused.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::sync::Arc;

use chassis_base::{Account, Clock, Error};
use chassis_data::references::Referrer;
use chassis_data::{Db, Tx};
use chassis_service::{Runtime, Service};
use chassis_testing::bare::Bare;
use chassis_testing::{Started, TestCaller, TestDatabase};
use chrono::TimeDelta;
use futures::future::join_all;
use proto::api::reference_service_client::ReferenceServiceClient;
use proto::api::{CountReferrersRequest, EndWithdrawalRequest, Problem, Reference, Referrers};
use sqlx::migrate::Migrator;
use tonic::Code;
use tonic::service::RoutesBuilder;
use tonic::transport::Channel;
use uuid::Uuid;

/// A service with loans, which refer to readers of another service.
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

    fn referrers() -> &'static [Referrer] {
        &[Referrer {
            kind: "loan",
            to: "reader",
            table: "bare.loan",
            id: "id",
            column: "reader_id",
            condition: "true",
            live: "not is_over",
        }]
    }
}

struct World {
    database: TestDatabase,
    clock: Clock,
    service: Started,
    account: Account,
}

impl World {
    async fn new() -> Self {
        let (database, clock) = (chassis_testing::bare::database().await, chassis_testing::clock());
        let sql = "create table bare.loan (account_id uuid, id uuid, reader_id uuid, is_over boolean, \
                   primary key (account_id, id))";
        sqlx::query(sql).execute(&mut database.connect().await).await.unwrap();
        let service = chassis_testing::start::<Library>(database.url(), &clock).await;
        Self { database, clock, service, account: chassis_testing::account() }
    }

    fn db(&self) -> &Db {
        &self.service.runtime.db
    }

    async fn lend(&self, reader: Uuid, is_over: bool) -> Result<(), Error> {
        self.db().record(&self.account, &(reader, is_over), lend).await
    }

    fn references(&self) -> ReferenceServiceClient<Channel> {
        ReferenceServiceClient::new(self.service.channel())
    }

    async fn ask(&self, reader: Uuid, only_live: bool, withdrawal: Option<Uuid>) -> Vec<Referrers> {
        let reference = Reference { kind: "reader".to_owned(), id: reader.to_string() };
        let withdrawal = withdrawal.map(|it| it.to_string()).unwrap_or_default();
        let request = CountReferrersRequest { reference: Some(reference), only_live, withdrawal };
        let caller = TestCaller::mesh(&self.account, &self.clock);
        let counted = self.references().count_referrers(caller.request(request)).await;
        counted.unwrap().into_inner().referrers
    }

    async fn end(&self, withdrawal: Uuid) {
        let request = EndWithdrawalRequest { withdrawal: withdrawal.to_string() };
        let caller = TestCaller::mesh(&self.account, &self.clock);
        self.references().end_withdrawal(caller.request(request)).await.unwrap();
    }
}

async fn lend(tx: &mut Tx<'_>, (reader, is_over): &(Uuid, bool)) -> Result<(), Error> {
    let (account, id) = (tx.account(), tx.id());
    tx.unaudited("a test");
    tx.refers_to(*reader);
    let sql = "insert into bare.loan (account_id, id, reader_id, is_over) values ($1, $2, $3, $4)";
    sqlx::query(sql).bind(account).bind(id).bind(reader).bind(is_over).execute(tx.db()).await?;
    Ok(())
}

fn is_refused(outcome: &Result<(), Error>) -> bool {
    matches!(outcome, Err(Error::Problem { problem: Problem::Unavailable, .. }))
}

#[tokio::test]
async fn a_record_that_something_refers_to_is_not_withdrawn() {
    let world = World::new().await;
    let (reader, withdrawal) = (Uuid::new_v4(), Uuid::new_v4());
    for _ in 0..7 {
        world.lend(reader, true).await.unwrap();
    }
    let counted = world.ask(reader, false, Some(withdrawal)).await;
    assert_eq!((counted.len(), counted[0].kind.as_str(), counted[0].count), (1, "loan", 7));
    assert_eq!(counted[0].ids.len(), 5);
    world.lend(reader, true).await.unwrap();
    assert_eq!(world.ask(reader, true, None).await, [], "none of them is live");
    world.lend(reader, false).await.unwrap();
    assert_eq!(world.ask(reader, true, None).await[0].count, 1);
    assert_eq!(world.ask(Uuid::new_v4(), false, None).await, []);
}

#[tokio::test]
async fn a_withdrawn_record_is_refused_until_the_withdrawal_ends_or_is_over() {
    let world = World::new().await;
    let (reader, other) = (Uuid::new_v4(), Uuid::new_v4());
    let [first, second] = [Uuid::new_v4(), Uuid::new_v4()];
    assert_eq!(world.ask(reader, false, Some(first)).await, []);
    assert_eq!(world.ask(reader, false, Some(second)).await, []);
    // Whichever row it locks.
    for _ in 0..9 {
        assert!(is_refused(&world.lend(reader, false).await));
    }
    world.lend(other, false).await.unwrap();
    world.end(first).await;
    assert!(is_refused(&world.lend(reader, false).await), "another one goes on");
    world.end(second).await;
    world.end(second).await;
    world.lend(reader, false).await.unwrap();
    let left = Uuid::new_v4();
    assert_eq!(world.ask(left, false, Some(first)).await, []);
    world.clock.advance(TimeDelta::seconds(119));
    assert!(is_refused(&world.lend(left, false).await));
    world.clock.advance(TimeDelta::seconds(2));
    world.lend(left, false).await.unwrap();
}

#[tokio::test]
async fn what_an_account_withdraws_is_there_for_others() {
    let world = World::new().await;
    let reader = Uuid::new_v4();
    assert_eq!(world.ask(reader, false, Some(Uuid::new_v4())).await, []);
    let other = World { account: chassis_testing::account(), ..world };
    other.lend(reader, false).await.unwrap();
    assert!(other.database.url().starts_with("postgres"));
}

#[tokio::test]
async fn of_writes_at_the_same_moment_each_is_counted_or_refused() {
    let world = World::new().await;
    for _ in 0..20 {
        let reader = Uuid::new_v4();
        let writes = join_all((0..6).map(|_| world.lend(reader, false)));
        let (written, counted) = tokio::join!(writes, world.ask(reader, false, Some(Uuid::new_v4())));
        assert!(written.iter().all(|outcome| outcome.is_ok() || is_refused(outcome)), "{written:?}");
        let written = written.iter().filter(|outcome| outcome.is_ok()).count();
        assert!(counted.is_empty() == (written == 0), "{written} written, counted {counted:?}");
    }
}

#[tokio::test]
async fn what_is_no_id_is_refused() {
    let world = World::new().await;
    let caller = TestCaller::mesh(&world.account, &world.clock);
    let reference = Reference { kind: "reader".to_owned(), id: "x".to_owned() };
    let request =
        CountReferrersRequest { reference: Some(reference), only_live: false, withdrawal: "y".to_owned() };
    let refused = world.references().count_referrers(caller.request(request)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let request = EndWithdrawalRequest { withdrawal: String::new() };
    let refused = world.references().end_withdrawal(caller.request(request)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
}
