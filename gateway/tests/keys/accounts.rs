//! Accounts over gRPC, and their provisioning in the services.

use chassis_service::Service;
use chassis_testing::{TestCaller, account, start};
use proto::accounts::{
    CreateAccountRequest, CreateKeyRequest, ListAccountsRequest, ListKeysRequest, RevokeKeyRequest,
};
use svc_crm::Crm;
use svc_work::Work;
use tonic::Code;

use crate::support::{World, database, key_for};

fn bakery() -> CreateAccountRequest {
    CreateAccountRequest {
        name: " Bakery ".to_owned(),
        country: "be".to_owned(),
        timezone: "Europe/Brussels".to_owned(),
        currency: "eur".to_owned(),
    }
}

async fn known_to(world: &World, schema: &str, id: &str) -> Option<(String, String)> {
    let sql =
        format!("select name, country || ' ' || timezone from {schema}.account where account_id = $1::uuid");
    sqlx::query_as(sqlx::AssertSqlSafe(sql))
        .bind(uuid::Uuid::parse_str(id).unwrap())
        .fetch_optional(&mut world.database.connect().await)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_new_account_is_known_to_every_service() {
    let database = database().await;
    let clock = chassis_testing::clock();
    let work = start::<Work>(database.url(), &clock).await;
    let crm = start::<Crm>(database.url(), &clock).await;
    let peers = format!("work={},crm={}", work.url(), crm.url());
    let mut world = World::with_peers(database, &peers).await;
    let response = world.client.create_account(world.mesh().request(bakery())).await.unwrap();
    let made = response.into_inner().account.unwrap();
    assert_eq!((made.name.as_str(), made.country.as_str(), made.currency.as_str()), ("Bakery", "BE", "EUR"));
    for schema in [gateway::NAME, Work::NAME, Crm::NAME] {
        let known = known_to(&world, schema, &made.id).await.unwrap();
        assert_eq!(known, ("Bakery".to_owned(), "BE Europe/Brussels".to_owned()), "{schema}");
    }
}

#[tokio::test]
async fn an_account_exists_even_when_provisioning_failed_and_can_be_provisioned_later() {
    let database = database().await;
    // Nothing listens on the port of a listener that is gone.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut world = World::with_peers(database, &format!("work=http://{gone}")).await;
    let keyed = world.mesh().keyed("one", bakery());
    let status = world.client.create_account(keyed).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.message().contains("work"), "{}", status.message());
    let list = world.client.list_accounts(world.mesh().request(ListAccountsRequest {})).await.unwrap();
    assert_eq!(list.into_inner().accounts[0].name, "Bakery");
    let accounts = gateway::accounts::Accounts::new(world.replica());
    assert!(
        accounts.provision("bakery").await.unwrap().is_empty(),
        "a replica without peers has nothing to provision"
    );
}

#[tokio::test]
async fn an_account_is_found_by_id_or_name_and_a_name_means_one_account() {
    let mut world = World::new().await;
    let made = world.account("Bakery").await;
    for taken in ["Bakery", "bakery", "BAKERY"] {
        let input = CreateAccountRequest { name: taken.to_owned(), ..bakery() };
        let status = world.client.create_account(world.mesh().request(input)).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
    }
    world.key(key_for(&made.id)).await;
    world.key(key_for("bakery")).await;
    let keys = |account: &str| world.mesh().request(ListKeysRequest { account: account.to_owned() });
    let (by_id, by_name, unknown) = (keys(&made.id), keys("Bakery"), keys("Butcher"));
    assert_eq!(world.client.list_keys(by_id).await.unwrap().into_inner().keys.len(), 2);
    assert_eq!(world.client.list_keys(by_name).await.unwrap().into_inner().keys.len(), 2);
    assert_eq!(world.client.list_keys(unknown).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn a_repeated_create_returns_the_first_account() {
    let mut world = World::new().await;
    let mesh = world.mesh();
    let first = world.client.create_account(mesh.keyed("one", bakery())).await.unwrap().into_inner();
    let again = world.client.create_account(mesh.keyed("one", bakery())).await.unwrap().into_inner();
    assert_eq!(first, again);
}

#[tokio::test]
async fn what_is_wrong_is_refused() {
    let mut world = World::new().await;
    world.account("Bakery").await;
    let accounts = [
        CreateAccountRequest { name: " ".to_owned(), ..bakery() },
        CreateAccountRequest { name: uuid::Uuid::nil().to_string(), ..bakery() },
        CreateAccountRequest { name: "a\0b".to_owned(), ..bakery() },
        CreateAccountRequest { country: "Belgium".to_owned(), ..bakery() },
        CreateAccountRequest { timezone: "Brussels".to_owned(), ..bakery() },
    ];
    for input in accounts {
        let request = world.mesh().request(input.clone());
        let status = world.client.create_account(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{input:?}");
    }
    let time = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
    let keys = [
        CreateKeyRequest { scopes: vec!["relations.destroy".to_owned()], ..key_for("Bakery") },
        CreateKeyRequest { scopes: Vec::new(), ..key_for("Bakery") },
        CreateKeyRequest { all_scopes: true, ..key_for("Bakery") },
        CreateKeyRequest { expires_at: time(0), ..key_for("Bakery") },
        CreateKeyRequest { expires_at: time(i64::MAX), ..key_for("Bakery") },
        CreateKeyRequest { expires_at: time(300_000_000_000), ..key_for("Bakery") },
    ];
    for input in keys {
        let request = world.mesh().request(input.clone());
        let status = world.client.create_key(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{input:?}");
    }
    for (key, code) in [("nonsense", Code::InvalidArgument), ("aaaaaaaaaaaaaaaa", Code::NotFound)] {
        let request = world.mesh().request(RevokeKeyRequest { key: key.to_owned() });
        assert_eq!(world.client.revoke_key(request).await.unwrap_err().code(), code);
    }
}

#[tokio::test]
async fn accounts_are_the_business_of_the_mesh_only() {
    let mut world = World::new().await;
    let scopes = gateway::scopes::all().to_vec();
    let key_holder = TestCaller { account: account(), clock: world.clock.clone(), scopes };
    let status = world.client.list_accounts(key_holder.request(ListAccountsRequest {})).await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied);
}
