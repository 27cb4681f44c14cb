//! The write transaction on real Postgres: it takes effect exactly once, completely or not at all.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::sync::Arc;

use chassis_base::Error;
use chassis_data::{Event, Listing, Tx};
use chassis_rpc::Call;
use chassis_rpc::call::REPLAY;
use chassis_service::{Runtime, Service};
use chassis_testing::bare::context;
use chassis_testing::{TestCaller, TestDatabase};
use proto::api::provisioning_service_client::ProvisioningServiceClient;
use proto::api::{ProvisionAccountRequest, ProvisionAccountResponse};
use sqlx::migrate::Migrator;
use tonic::service::RoutesBuilder;

static NO_MIGRATIONS: Migrator = Migrator::DEFAULT;

/// A service that numbers its provisionings, emits an event for each and counts them.
struct Bare;

#[tonic::async_trait]
impl Service for Bare {
    const NAME: &'static str = "bare";
    const ABOUT: &'static str = "For tests";

    fn migrations() -> &'static Migrator {
        &NO_MIGRATIONS
    }

    async fn new(_: &Runtime) -> Result<Self, String> {
        Ok(Self)
    }

    fn routes(self: &Arc<Self>, _: &mut RoutesBuilder) {}

    async fn provision(&self, tx: &mut Tx<'_>) -> Result<(), Error> {
        let account = tx.account();
        let number = chassis_data::numbering::next(tx.db(), account, "provisioned").await?;
        let (id, now) = (tx.id(), tx.now());
        tx.emit(&Event {
            kind: "account.provisioned",
            entity_type: "account",
            entity_id: id,
            version: number,
            data: "{}".into(),
        });
        tx.list(&Listing::new(now, id).of("account"));
        Ok(())
    }
}

async fn database() -> TestDatabase {
    TestDatabase::new(&[("bare", &NO_MIGRATIONS)]).await
}

fn request() -> ProvisionAccountRequest {
    ProvisionAccountRequest { name: "Bakery".into() }
}

async fn provisioned(database: &TestDatabase) -> i64 {
    let mut connection = database.connect().await;
    let counter: Option<i64> =
        sqlx::query_scalar("select value from bare.counter").fetch_optional(&mut connection).await.unwrap();
    counter.unwrap_or(0)
}

#[tokio::test]
async fn a_repeat_gets_the_first_answer_and_has_no_effect() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let service = chassis_testing::start::<Bare>(database.url(), &clock).await;
    let mut client = ProvisioningServiceClient::new(service.channel());
    let caller = TestCaller::mesh(&chassis_testing::account(), &clock);

    let first = client.provision_account(caller.keyed("k", request())).await.unwrap();
    let second = client.provision_account(caller.keyed("k", request())).await.unwrap();
    assert!(first.metadata().get(REPLAY).is_none());
    assert_eq!(second.metadata().get(REPLAY).unwrap(), "true");
    assert_eq!(provisioned(&database).await, 1);

    let other = ProvisionAccountRequest { name: "Butcher".into() };
    let status = client.provision_account(caller.keyed("k", other)).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::InvalidArgument);
    assert_eq!(provisioned(&database).await, 1);

    clock.advance(chassis_data::idempotency::WINDOW);
    client.provision_account(caller.keyed("k", request())).await.unwrap();
    assert_eq!(provisioned(&database).await, 2, "after 24 hours the key is free again");
}

#[tokio::test]
async fn many_twins_at_once_have_one_effect() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let service = chassis_testing::start::<Bare>(database.url(), &clock).await;
    let caller = TestCaller::mesh(&chassis_testing::account(), &clock);
    let calls = (0..50).map(|_| {
        let mut client = ProvisioningServiceClient::new(service.channel());
        let request = caller.keyed("k", request());
        tokio::spawn(async move { client.provision_account(request).await.map(|_| ()) })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap().unwrap();
    }
    assert_eq!(provisioned(&database).await, 1);
}

#[tokio::test]
async fn a_failed_request_leaves_nothing_behind_and_frees_its_key() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let service = chassis_testing::start::<Bare>(database.url(), &clock).await;
    let mut client = ProvisioningServiceClient::new(service.channel());
    let caller = TestCaller::mesh(&chassis_testing::account(), &clock);
    let blank = ProvisionAccountRequest { name: " ".into() };
    let status = client.provision_account(caller.keyed("k", blank)).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::InvalidArgument);
    assert_eq!(provisioned(&database).await, 0);
    client.provision_account(caller.keyed("k", request())).await.unwrap();
    assert_eq!(provisioned(&database).await, 1);
}

#[tokio::test]
async fn events_and_totals_are_kept_with_the_change() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let service = chassis_testing::start::<Bare>(database.url(), &clock).await;
    let mut client = ProvisioningServiceClient::new(service.channel());
    let account = chassis_testing::account();
    client.provision_account(TestCaller::mesh(&account, &clock).request(request())).await.unwrap();
    let mut connection = service.runtime.db.acquire().await.unwrap();
    let entries: Vec<(String, i64, Option<String>, Option<String>)> = sqlx::query_as(
        "select kind, version, change, event from log join feed using (account_id, id) order by position",
    )
    .fetch_all(&mut *connection)
    .await
    .unwrap();
    let kind = "account".to_owned();
    let changed = (kind.clone(), 1, Some("created".to_owned()), None);
    assert_eq!(entries, [changed, (kind, 1, None, Some("account.provisioned".to_owned()))]);
    let total: i64 = sqlx::query_scalar(
        "select sum(entries)::bigint from total where account_id = $1 and list = 'account' and bucket = '0001-01-01'",
    )
    .bind(account.id)
    .fetch_one(&mut *connection)
    .await
    .unwrap();
    assert_eq!(total, 1);
}

#[tokio::test]
async fn a_call_without_a_genuine_token_or_scope_is_refused() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let service = chassis_testing::start::<Bare>(database.url(), &clock).await;
    let mut client = ProvisioningServiceClient::new(service.channel());
    let bare = client.provision_account(tonic::Request::new(request())).await.unwrap_err();
    assert_eq!(bare.code(), tonic::Code::Unauthenticated);
    let mut caller = TestCaller::mesh(&chassis_testing::account(), &clock);
    caller.scopes = vec!["relations.write".into()];
    let scoped = client.provision_account(caller.request(request())).await.unwrap_err();
    assert_eq!(scoped.code(), tonic::Code::PermissionDenied);
    let old = TestCaller::mesh(&chassis_testing::account(), &clock).request(request());
    clock.advance(chrono::TimeDelta::seconds(61));
    assert_eq!(client.provision_account(old).await.unwrap_err().code(), tonic::Code::Unauthenticated);
}

#[tokio::test]
async fn a_transaction_that_loses_a_race_is_run_again() {
    use std::sync::atomic::{AtomicU32, Ordering};
    let (database, clock) = (database().await, chassis_testing::clock());
    let service = chassis_testing::start::<Bare>(database.url(), &clock).await;
    let attempts = std::sync::Arc::new(AtomicU32::new(0));
    let counted = std::sync::Arc::clone(&attempts);
    let operation = async move |tx: &mut Tx<'_>, _: &ProvisionAccountRequest| {
        let account = tx.account();
        chassis_data::numbering::next(tx.db(), account, "provisioned").await?;
        if counted.fetch_add(1, Ordering::SeqCst) < 2 {
            // The error of Postgres for a serialisation failure.
            sqlx::raw_sql("do $$ begin raise exception 'race' using errcode = '40001'; end $$")
                .execute(tx.db())
                .await?;
        }
        Ok::<_, Error>(ProvisionAccountResponse {})
    };
    let call = Call {
        context: context(&chassis_testing::account(), &clock),
        input: request(),
        faults: proto::Faults::default(),
    };
    service.runtime.db.write(call, operation).await.unwrap();
    assert_eq!(attempts.load(Ordering::SeqCst), 3);
    assert_eq!(provisioned(&database).await, 1);
}

/// An operation that can be done once: the second time it finds that it is done.
async fn provision_once(
    tx: &mut Tx<'_>,
    _: &ProvisionAccountRequest,
) -> Result<ProvisionAccountResponse, Error> {
    let account = tx.account();
    let number = chassis_data::numbering::next(tx.db(), account, "provisioned").await?;
    if number > 1 {
        return Err(Error::problem(proto::api::Problem::WrongStatus, "It is done."));
    }
    tx.unaudited("a test");
    Ok(ProvisionAccountResponse {})
}

#[tokio::test]
async fn a_repeat_that_would_fail_on_what_the_first_has_done_gets_its_answer() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let service = chassis_testing::start::<Bare>(database.url(), &clock).await;
    let (account, write) = (chassis_testing::account(), &service.runtime.db);
    let call = |key: Option<&str>, input: ProvisionAccountRequest| {
        let mut context = context(&account, &clock);
        context.idempotency_key = key.map(Into::into);
        Call { context, input, faults: proto::Faults::default() }
    };
    let is_replay = |response: tonic::Response<_>| response.metadata().contains_key(REPLAY);
    let first = write.write(call(Some("k"), request()), provision_once).await.unwrap();
    assert!(!is_replay(first));
    let again = write.write(call(Some("k"), request()), provision_once).await.unwrap();
    assert!(is_replay(again));
    let other = ProvisionAccountRequest { name: "Butcher".into() };
    let mismatch = write.write(call(Some("k"), other), provision_once).await.unwrap_err();
    assert_eq!(mismatch.code(), tonic::Code::InvalidArgument, "whatever else is wrong with it");
    for key in [None, Some("another")] {
        let refused = write.write(call(key, request()), provision_once).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::FailedPrecondition);
    }
    assert_eq!(provisioned(&database).await, 1);
}

#[tokio::test]
async fn a_call_whose_twin_does_not_end_says_so() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let service = chassis_testing::start::<Bare>(database.url(), &clock).await;
    let mut client = ProvisioningServiceClient::new(service.channel());
    let account = chassis_testing::account();
    let caller = TestCaller::mesh(&account, &clock);
    client.provision_account(caller.keyed("k", request())).await.unwrap();
    clock.advance(chassis_data::idempotency::WINDOW);
    // An open transaction that has taken the key over.
    let mut twin = database.connect().await;
    sqlx::raw_sql("begin; update bare.idempotency set response = response").execute(&mut twin).await.unwrap();
    let status = client.provision_account(caller.keyed("k", request())).await.unwrap_err();
    let code = proto::api::Problem::IdempotencyInProgress.code().as_bytes();
    assert!(status.details().windows(code.len()).any(|part| part == code), "{status:?}");
    sqlx::raw_sql("rollback").execute(&mut twin).await.unwrap();
    client.provision_account(caller.keyed("k", request())).await.unwrap();
    assert_eq!(provisioned(&database).await, 2);
}
