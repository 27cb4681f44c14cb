//! Credentials of internal teams: from issuing to a call of a service, and to their end.

use chassis_rpc::token;
use chassis_testing::{Started, start};
use chrono::{DateTime, TimeDelta};
use proto::accounts::account_service_client::AccountServiceClient;
use proto::accounts::credential_service_client::CredentialServiceClient;
use proto::accounts::token_service_client::TokenServiceClient;
use proto::accounts::{
    CreateTokenRequest, CreateTokenResponse, Credential, IssueCredentialRequest, IssueCredentialResponse,
    ListAccountsRequest, ListCredentialsRequest, RevokeCredentialRequest,
};
use proto::crm::deal_source_service_client::DealSourceServiceClient;
use proto::crm::{CreateDealSourceRequest, ListDealSourcesRequest};
use svc_crm::Crm;
use tonic::{Code, Request, Status};

use crate::support::{World, key_for};

async fn issue(world: &World, input: IssueCredentialRequest) -> Result<IssueCredentialResponse, Status> {
    let mut client = CredentialServiceClient::new(world.channel.clone());
    client.issue_credential(world.mesh().request(input)).await.map(tonic::Response::into_inner)
}

/// A credential of the accounts.
async fn credential(world: &World, accounts: &[&str], scopes: &[&str]) -> String {
    issue(world, request_for(accounts, scopes)).await.unwrap().secret
}

fn request_for(accounts: &[&str], scopes: &[&str]) -> IssueCredentialRequest {
    let owned = |list: &[&str]| list.iter().map(|entry| (*entry).to_owned()).collect();
    IssueCredentialRequest {
        team: "Reporting".to_owned(),
        accounts: owned(accounts),
        scopes: owned(scopes),
        ..IssueCredentialRequest::default()
    }
}

async fn list(world: &World) -> Vec<Credential> {
    let request = world.mesh().request(ListCredentialsRequest {});
    let mut client = CredentialServiceClient::new(world.channel.clone());
    client.list_credentials(request).await.unwrap().into_inner().credentials
}

async fn revoke(world: &World, credential: &str) -> Result<(), Status> {
    let request = world.mesh().request(RevokeCredentialRequest { credential: credential.to_owned() });
    CredentialServiceClient::new(world.channel.clone()).revoke_credential(request).await.map(drop)
}

/// As a team asks: with nothing but its credential.
async fn create_token(
    world: &World,
    credential: &str,
    account: &str,
    scopes: &[&str],
) -> Result<CreateTokenResponse, Status> {
    let input = CreateTokenRequest {
        credential: credential.to_owned(),
        account: account.to_owned(),
        scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
        ..CreateTokenRequest::default()
    };
    create_token_for(world, input).await
}

async fn create_token_for(world: &World, input: CreateTokenRequest) -> Result<CreateTokenResponse, Status> {
    let mut client = TokenServiceClient::new(world.channel.clone());
    client.create_token(Request::new(input)).await.map(tonic::Response::into_inner)
}

fn with<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert(token::HEADER, token.parse().unwrap());
    request
}

async fn sources(crm: &Started, token: &str) -> Result<Vec<String>, Status> {
    let mut client = DealSourceServiceClient::new(crm.channel());
    let answer = client.list_deal_sources(with(token, ListDealSourcesRequest {})).await?;
    Ok(answer.into_inner().data.into_iter().map(|source| source.name).collect())
}

async fn add_source(crm: &Started, token: &str, name: &str) -> Result<(), Status> {
    let request = with(token, CreateDealSourceRequest { name: name.to_owned() });
    DealSourceServiceClient::new(crm.channel()).create_deal_source(request).await.map(drop)
}

/// A gateway, a service that runs by the same clock, and two accounts.
async fn mesh() -> (World, Started) {
    let world = World::new().await;
    let crm = start::<Crm>(world.database.url(), &world.clock).await;
    world.account("Bakery").await;
    world.account("Butcher").await;
    (world, crm)
}

#[tokio::test]
async fn a_team_calls_a_service_with_a_token_for_one_of_its_accounts() {
    let (world, crm) = mesh().await;
    let secret = credential(&world, &["Bakery", "butcher"], &["deals.read", "crm.internal"]).await;
    let bakery = create_token(&world, &secret, "bakery", &[]).await.unwrap();
    assert_eq!(bakery.scopes, ["crm.internal", "deals.read"]);
    let butcher = create_token(&world, &secret, "Butcher", &[]).await.unwrap();
    add_source(&crm, &bakery.token, "Fair").await.unwrap();
    assert!(sources(&crm, &bakery.token).await.unwrap().contains(&"Fair".to_owned()));
    assert!(!sources(&crm, &butcher.token).await.unwrap().contains(&"Fair".to_owned()), "another account");
    let by_id = create_token(&world, &secret, &bakery.account_id, &[]).await.unwrap();
    assert_eq!(by_id.account_id, bakery.account_id);
}

#[tokio::test]
async fn a_token_can_do_what_its_scopes_say_and_nothing_else() {
    let (world, crm) = mesh().await;
    let secret = credential(&world, &["Bakery"], &["deals.read", "work.internal"]).await;
    let token = create_token(&world, &secret, "Bakery", &[]).await.unwrap().token;
    sources(&crm, &token).await.unwrap();
    let refused = add_source(&crm, &token, "Fair").await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert!(refused.message().contains("settings.write"), "{}", refused.message());
    let less = create_token(&world, &secret, "Bakery", &["work.internal"]).await.unwrap().token;
    assert_eq!(sources(&crm, &less).await.unwrap_err().code(), Code::PermissionDenied);
    let more = create_token(&world, &secret, "Bakery", &["deals.read", "deals.write"]).await.unwrap_err();
    assert_eq!(more.code(), Code::PermissionDenied);
    assert!(more.message().contains("deals.write"), "{}", more.message());
}

#[tokio::test]
async fn a_token_for_one_service_is_refused_by_the_others() {
    let (world, crm) = mesh().await;
    let secret = credential(&world, &["Bakery"], &["deals.read"]).await;
    let input = |audience: &str| CreateTokenRequest {
        credential: secret.clone(),
        account: "Bakery".to_owned(),
        audience: audience.to_owned(),
        ..CreateTokenRequest::default()
    };
    let ours = create_token_for(&world, input("crm")).await.unwrap().token;
    sources(&crm, &ours).await.unwrap();
    let theirs = create_token_for(&world, input("billing")).await.unwrap().token;
    assert_eq!(sources(&crm, &theirs).await.unwrap_err().code(), Code::Unauthenticated);
}

#[tokio::test]
async fn no_credential_makes_accounts_keys_or_credentials() {
    let (world, _crm) = mesh().await;
    let input = IssueCredentialRequest { all_scopes: true, ..request_for(&["Bakery"], &[]) };
    let secret = issue(&world, input).await.unwrap().secret;
    let token = create_token(&world, &secret, "Bakery", &[]).await.unwrap().token;
    let mut accounts = AccountServiceClient::new(world.channel.clone());
    let listed = accounts.list_accounts(with(&token, ListAccountsRequest {})).await.unwrap_err();
    let made = accounts.create_key(with(&token, key_for("Bakery"))).await.unwrap_err();
    let mut credentials = CredentialServiceClient::new(world.channel.clone());
    let issued = credentials.issue_credential(with(&token, request_for(&["Butcher"], &["deals.read"]))).await;
    for refused in [listed, made, issued.unwrap_err()] {
        assert_eq!(refused.code(), Code::PermissionDenied);
    }
}

#[tokio::test]
async fn a_wrong_account_or_credential_is_refused_in_one_way() {
    let (world, _crm) = mesh().await;
    let secret = credential(&world, &["Bakery"], &["deals.read"]).await;
    let key = world.key(key_for("Bakery")).await.secret;
    let other = gateway::keys::NewKey::credential().text;
    let mut messages = Vec::new();
    for (credential, account) in [
        (secret.as_str(), "Butcher"),
        (secret.as_str(), "Baker"),
        (other.as_str(), "Bakery"),
        (key.as_str(), "Bakery"),
        ("nonsense", "Bakery"),
    ] {
        let refused = create_token(&world, credential, account, &[]).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated, "{account}");
        messages.push(refused.message().to_owned());
    }
    messages.dedup();
    assert_eq!(messages.len(), 1, "{messages:?}");
}

#[tokio::test]
async fn a_revoked_credential_makes_no_token_and_its_last_one_ends_within_a_minute() {
    let (world, crm) = mesh().await;
    let secret = credential(&world, &["Bakery", "Butcher"], &["deals.read"]).await;
    let last = create_token(&world, &secret, "Bakery", &[]).await.unwrap();
    let public_id = secret.split('_').nth(1).unwrap();
    revoke(&world, public_id).await.unwrap();
    revoke(&world, &secret).await.unwrap();
    for account in ["Bakery", "Butcher"] {
        let refused = create_token(&world, &secret, account, &[]).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated);
    }
    sources(&crm, &last.token).await.unwrap();
    world.clock.advance(TimeDelta::seconds(61));
    assert_eq!(sources(&crm, &last.token).await.unwrap_err().code(), Code::Unauthenticated);
    assert_eq!(last.expires_at.unwrap().seconds, world.clock.now().timestamp() - 1);
}

#[tokio::test]
async fn a_credential_works_until_it_expires() {
    let (world, _crm) = mesh().await;
    let end = world.clock.now() + TimeDelta::hours(1);
    let expires_at = Some(chassis_base::time::timestamp(end));
    let input = IssueCredentialRequest { expires_at, ..request_for(&["Bakery"], &["deals.read"]) };
    let secret = issue(&world, input).await.unwrap().secret;
    create_token(&world, &secret, "Bakery", &[]).await.unwrap();
    world.clock.advance(TimeDelta::hours(1));
    assert_eq!(create_token(&world, &secret, "Bakery", &[]).await.unwrap_err().code(), Code::Unauthenticated);
}

#[tokio::test]
async fn credentials_are_listed_with_their_last_use_and_without_their_secret() {
    let (world, _crm) = mesh().await;
    let secret = credential(&world, &["Bakery", "Butcher", "BAKERY"], &["deals.read"]).await;
    let unused = credential(&world, &["Bakery"], &["work.internal"]).await;
    create_token(&world, &secret, "Butcher", &[]).await.unwrap();
    revoke(&world, &unused).await.unwrap();
    let listed = list(&world).await;
    let of = |secret: &str| {
        let public_id = secret.split('_').nth(1).unwrap();
        listed.iter().find(|credential| credential.public_id == public_id).unwrap()
    };
    assert_eq!(listed.len(), 2);
    assert_eq!(of(&secret).account_ids.len(), 2, "each account once");
    assert!(of(&secret).last_used_at.is_some() && of(&secret).revoked_at.is_none());
    assert!(of(&unused).last_used_at.is_none() && of(&unused).revoked_at.is_some());
    let stored: Vec<Vec<u8>> = sqlx::query_scalar("select secret_hash from gateway.credential")
        .fetch_all(&mut world.database.connect().await)
        .await
        .unwrap();
    let secret = secret.split('_').nth(2).unwrap().as_bytes();
    assert!(stored.iter().all(|hash| hash.len() == 32 && !secret.starts_with(hash)));
}

#[tokio::test]
async fn what_is_wrong_with_a_credential_is_said() {
    let (world, _crm) = mesh().await;
    let past = Some(chassis_base::time::timestamp(DateTime::UNIX_EPOCH));
    let cases = [
        (request_for(&["Bakery"], &["deals.destroy"]), Code::InvalidArgument),
        (request_for(&["Bakery"], &["mesh"]), Code::InvalidArgument),
        (request_for(&["Bakery"], &["accounts.internal"]), Code::InvalidArgument),
        (request_for(&["Bakery"], &[]), Code::InvalidArgument),
        (request_for(&[], &["deals.read"]), Code::InvalidArgument),
        (request_for(&["Baker"], &["deals.read"]), Code::NotFound),
        (
            IssueCredentialRequest { team: " ".to_owned(), ..request_for(&["Bakery"], &["deals.read"]) },
            Code::InvalidArgument,
        ),
        (
            IssueCredentialRequest { expires_at: past, ..request_for(&["Bakery"], &["deals.read"]) },
            Code::InvalidArgument,
        ),
    ];
    for (input, code) in cases {
        assert_eq!(issue(&world, input.clone()).await.unwrap_err().code(), code, "{input:?}");
    }
    for (credential, code) in [("nonsense", Code::InvalidArgument), ("aaaaaaaaaaaaaaaa", Code::NotFound)] {
        assert_eq!(revoke(&world, credential).await.unwrap_err().code(), code);
    }
    assert!(list(&world).await.is_empty());
}
