//! Public calls without a key: the account that they reach, and what they are refused.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops where its fact is false")]

use std::sync::Arc;

use chassis_base::{AccountId, Error};
use chassis_data::{Db, Tx};
use chassis_rpc::link::unknown_link;
use chassis_rpc::token::{self, Tokens};
use chassis_rpc::{Call, Context, Link};
use chassis_testing::TestCaller;
use chassis_testing::bare::Bare;
use proto::api::provisioning_service_client::ProvisioningServiceClient;
use proto::api::{Problem, ProvisionAccountRequest, ProvisionAccountResponse};
use tonic::{Code, Request};
use uuid::Uuid;

/// A call without a key whose request has `text` in place of the link.
fn public_call(db: &Db, text: &str) -> Call<ProvisionAccountRequest> {
    let tokens = Tokens::new(chassis_testing::secret());
    let now = db.clock().now();
    let context = chassis_testing::bare::context(&chassis_testing::account(), db.clock());
    let identity = tokens.verify(&tokens.to_self().mint_public(now), now).unwrap();
    call(Context { identity, ..context }, text)
}

fn call(context: Context, text: &str) -> Call<ProvisionAccountRequest> {
    Call {
        context,
        input: ProvisionAccountRequest { name: text.to_owned() },
        faults: proto::Faults::default(),
    }
}

fn is_unknown<T>(outcome: &Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::Problem { problem: Problem::NotFound, .. }))
}

#[tokio::test]
async fn a_link_opens_its_account_for_reading_and_writing() {
    let database = chassis_testing::bare::database().await;
    let (clock, account) = (chassis_testing::clock(), chassis_testing::account());
    let service = chassis_testing::start::<Bare>(database.url(), &clock).await;
    let db = &service.runtime.db;
    let mut client = ProvisioningServiceClient::new(service.channel());
    let known = TestCaller::mesh(&account, &clock);
    client.provision_account(known.request(ProvisionAccountRequest { name: "Bakery".into() })).await.unwrap();
    assert_eq!(db.account(account.id).await.unwrap(), Some(account.clone()));

    let link = Link::random(account.id);
    let (call, followed) = db.follow(public_call(db, &link.encode()), |request| &request.name).await.unwrap();
    assert_eq!((followed, call.context.account()), (link, &account));
    let write = async |tx: &mut Tx<'_>, _: &ProvisionAccountRequest| {
        assert_eq!(tx.account(), account.id);
        tx.unaudited("a name that nobody has");
        let changed = sqlx::query("update account set name = 'Followed' where account_id = $1")
            .bind(tx.account())
            .execute(tx.db())
            .await?;
        assert_eq!(changed.rows_affected(), 1);
        Ok::<_, Error>(ProvisionAccountResponse {})
    };
    db.write(call, write).await.unwrap();
}

#[tokio::test]
async fn a_link_that_leads_nowhere_is_unknown_whatever_the_reason() {
    let database = chassis_testing::bare::database().await;
    let db = chassis_testing::bare::open(&database, &chassis_testing::clock());
    let stranger = AccountId::trust(Uuid::new_v4());
    assert_eq!(db.account(stranger).await.unwrap(), None);
    for text in [Link::random(stranger).encode(), String::new(), "no link".to_owned(), "A".repeat(43)] {
        let followed = db.follow(public_call(&db, &text), |request| &request.name).await;
        assert!(is_unknown(&followed), "{text:?}");
    }
    assert!(is_unknown::<()>(&Err(unknown_link())));
}

#[tokio::test]
async fn a_caller_with_an_account_keeps_it() {
    let database = chassis_testing::bare::database().await;
    let db = chassis_testing::bare::open(&database, &chassis_testing::clock());
    let (own, other) = (chassis_testing::account(), chassis_testing::account());
    let keyed = |account| call(chassis_testing::bare::context(account, db.clock()), "");
    assert!(is_unknown(&keyed(&own).for_account(other.clone())));
    let kept = keyed(&own).for_account(own.clone()).unwrap();
    assert_eq!(kept.context.account_id(), own.id);
    let public = public_call(&db, "").for_account(other.clone()).unwrap();
    assert_eq!(public.context.account_id(), other.id);
    assert!(public.context.identity.is_public(), "still someone without a key");
    assert!(Arc::strong_count(&public.context.identity) == 1, "the remembered token still has no account");
}

#[tokio::test]
async fn someone_without_a_key_cannot_call_the_mesh() {
    let database = chassis_testing::bare::database().await;
    let clock = chassis_testing::clock();
    let service = chassis_testing::start::<Bare>(database.url(), &clock).await;
    let mut request = Request::new(ProvisionAccountRequest { name: "Bakery".into() });
    let token = Tokens::new(chassis_testing::secret()).to_self().mint_public(clock.now());
    request.metadata_mut().insert(token::HEADER, token.parse().unwrap());
    let refused = ProvisioningServiceClient::new(service.channel()).provision_account(request).await;
    assert_eq!(refused.unwrap_err().code(), Code::PermissionDenied);
}
