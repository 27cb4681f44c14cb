//! From a key to its caller, and how soon a change is seen.

use chassis_base::Timezone;
use chassis_base::time::timestamp;
use chassis_testing::eventually;
use chrono::{DateTime, TimeDelta, Utc};
use gateway::keys::AuthError;
use proto::accounts::CreateKeyRequest;

use crate::support::{World, key_for};

#[tokio::test]
async fn a_key_stands_for_its_account_and_scopes() {
    let world = World::new().await;
    let account = world.account("Bakery").await;
    let made = world.key(key_for(&account.id)).await;
    let caller = world.authenticator().authenticate(&made.secret).await.unwrap();
    assert_eq!(caller.account.id.to_string(), account.id);
    assert_eq!(caller.account.timezone, Timezone::AMSTERDAM);
    assert_eq!(
        (&*caller.public_id, caller.name.as_str()),
        (made.key.unwrap().public_id.as_str(), "Web shop")
    );
    assert!(caller.has_scope("relations.read") && caller.has_scope("any"));
    assert!(!caller.has_scope("relations.write"));
}

#[tokio::test]
async fn only_a_hash_of_the_secret_is_stored() {
    let world = World::new().await;
    let (key, _) = world.caller().await;
    let secret = key.split('_').nth(2).unwrap();
    let mut connection = world.database.connect().await;
    let found: bool = sqlx::query_scalar(
        "select (select count(*) from gateway.api_key k where k::text like '%' || $1 || '%')
             + (select count(*) from gateway.idempotency i where i::text like '%' || $1 || '%') > 0",
    )
    .bind(secret)
    .fetch_one(&mut connection)
    .await
    .unwrap();
    assert!(!found);
}

#[tokio::test]
async fn another_secret_for_a_known_public_id_is_refused() {
    let world = World::new().await;
    world.account("Bakery").await;
    let (one, other) = (world.key(key_for("Bakery")).await, world.key(key_for("Bakery")).await);
    // The row of one key now has the public id that the other key presents.
    let mut connection = world.database.connect().await;
    sqlx::query("update gateway.api_key set public_id = 'x' where public_id = $1")
        .bind(&other.key.as_ref().unwrap().public_id)
        .execute(&mut connection)
        .await
        .unwrap();
    sqlx::query("update gateway.api_key set public_id = $1 where public_id = $2")
        .bind(&other.key.as_ref().unwrap().public_id)
        .bind(&one.key.as_ref().unwrap().public_id)
        .execute(&mut connection)
        .await
        .unwrap();
    let authenticator = world.authenticator();
    for _ in 0..2 {
        assert!(matches!(authenticator.authenticate(&other.secret).await, Err(AuthError::Refused)));
    }
}

#[tokio::test]
async fn requests_that_come_together_share_one_look_up() {
    let world = World::new().await;
    let (key, _) = world.caller().await;
    let authenticator = world.authenticator();
    let mut together = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (authenticator, key) = (authenticator.clone(), key.clone());
        together.spawn(async move { authenticator.authenticate(&key).await.unwrap() });
    }
    let callers = together.join_all().await;
    // Each first look-up would have made a caller of its own.
    assert!(callers.iter().all(|caller| std::sync::Arc::ptr_eq(caller, &callers[0])));
}

#[tokio::test]
async fn an_unknown_key_works_as_soon_as_it_exists() {
    let (world, elsewhere) = (World::new().await, World::new().await);
    let (key, _) = elsewhere.caller().await;
    let authenticator = world.authenticator();
    assert!(matches!(authenticator.authenticate(&key).await, Err(AuthError::Refused)));
    let account = world.account("Bakery").await;
    let public_id = key.split('_').nth(1).unwrap();
    let hash: Vec<u8> = sqlx::query_scalar("select secret_hash from gateway.api_key where public_id = $1")
        .bind(public_id)
        .fetch_one(&mut elsewhere.database.connect().await)
        .await
        .unwrap();
    sqlx::query(
        "insert into gateway.api_key (account_id, public_id, name, secret_hash, scopes, created_at)
         values ($1::uuid, $2, 'Copy', $3, '{}', now())",
    )
    .bind(uuid::Uuid::parse_str(&account.id).unwrap())
    .bind(public_id)
    .bind(hash)
    .execute(&mut world.database.connect().await)
    .await
    .unwrap();
    assert!(authenticator.authenticate(&key).await.is_ok());
}

#[tokio::test]
async fn a_revoked_key_ends_within_the_time_it_is_trusted_for() {
    let world = World::new().await;
    let (key, _) = world.caller().await;
    let authenticator = world.authenticator();
    authenticator.authenticate(&key).await.unwrap();
    world.revoke(&key).await;
    assert!(authenticator.authenticate(&key).await.is_ok(), "what was read a moment ago is still trusted");
    world.clock.advance(TimeDelta::seconds(3));
    assert!(matches!(authenticator.authenticate(&key).await, Err(AuthError::Refused)));
    // Twice is the same as once, also by its public id.
    world.revoke(key.split('_').nth(1).unwrap()).await;
}

#[tokio::test]
async fn a_busy_key_is_read_again_before_it_has_to_be() {
    let world = World::new().await;
    let (key, _) = world.caller().await;
    let authenticator = world.authenticator();
    authenticator.authenticate(&key).await.unwrap();
    world.revoke(&key).await;
    world.clock.advance(TimeDelta::seconds(2));
    assert!(
        authenticator.authenticate(&key).await.is_ok(),
        "the request itself does not wait for the look-up"
    );
    // Time stands still, so only the look-up in the background can end this.
    eventually("the key is read again and refused", async || authenticator.authenticate(&key).await.is_err())
        .await;
}

#[tokio::test]
async fn a_key_expires_at_its_moment_even_while_it_is_trusted() {
    let world = World::new().await;
    world.account("Bakery").await;
    let expires_at = Some(timestamp(world.clock.now() + TimeDelta::seconds(1)));
    let key = world.key(CreateKeyRequest { expires_at, ..key_for("Bakery") }).await.secret;
    let authenticator = world.authenticator();
    authenticator.authenticate(&key).await.unwrap();
    world.clock.advance(TimeDelta::milliseconds(999));
    assert!(authenticator.authenticate(&key).await.is_ok());
    world.clock.advance(TimeDelta::milliseconds(1));
    assert!(matches!(authenticator.authenticate(&key).await, Err(AuthError::Refused)));
}

#[tokio::test]
async fn a_caller_and_its_token_outlive_a_look_up_that_finds_no_change() {
    let world = World::new().await;
    let (key, _) = world.caller().await;
    let authenticator = world.authenticator();
    let first = authenticator.authenticate(&key).await.unwrap();
    let token = first.context_token("billing");
    world.clock.advance(TimeDelta::seconds(44));
    let again = authenticator.authenticate(&key).await.unwrap();
    assert!(std::sync::Arc::ptr_eq(&first, &again));
    assert_eq!(again.context_token("billing"), token);
    world.clock.advance(TimeDelta::seconds(1));
    let renewed = again.context_token("billing");
    assert_ne!(renewed, token, "a token with 15 seconds left is renewed");
    let billing = world.runtime.tokens.clone().of("billing");
    let identity = billing.verify(renewed.to_str().unwrap(), world.clock.now()).unwrap();
    assert_eq!(identity.account, again.account);
    assert_eq!((identity.actor.as_str(), &identity.scopes), (&*again.public_id, &again.scopes));
}

#[tokio::test]
async fn a_database_that_is_away_is_not_the_keys_fault() {
    let world = World::new().await;
    let (key, _) = world.caller().await;
    let authenticator = world.authenticator();
    world.runtime.db.close().await;
    assert!(matches!(authenticator.authenticate(&key).await, Err(AuthError::Unavailable(_))));
    let mistyped = key.replace("ba_", "ab_");
    assert!(matches!(authenticator.authenticate(&mistyped).await, Err(AuthError::Refused)));
}

#[tokio::test]
async fn the_last_use_is_recorded_later() {
    let world = World::new().await;
    let (key, _) = world.caller().await;
    let authenticator = world.authenticator();
    authenticator.authenticate(&key).await.unwrap();
    let last_used = async || -> Option<DateTime<Utc>> {
        let mut connection = world.database.connect().await;
        sqlx::query_scalar("select last_used_at from gateway.api_key")
            .fetch_one(&mut connection)
            .await
            .unwrap()
    };
    assert_eq!(last_used().await, None);
    authenticator.record_uses().await.unwrap();
    assert_eq!(last_used().await, Some(world.clock.now()));
    let first_use = world.clock.now();
    world.clock.advance(TimeDelta::minutes(1));
    authenticator.record_uses().await.unwrap();
    assert_eq!(last_used().await, Some(first_use), "recording again without a use changes nothing");
}

#[tokio::test]
async fn a_time_zone_that_this_version_does_not_know_is_an_error_that_names_it() {
    let world = World::new().await;
    world.account("Bakery").await;
    let key = world.key(key_for("Bakery")).await.secret;
    sqlx::query("update gateway.account set timezone = 'Mars/Olympus'")
        .execute(&mut world.database.connect().await)
        .await
        .unwrap();
    let Err(AuthError::Unavailable(error)) = world.authenticator().authenticate(&key).await else {
        panic!("the key has no usable account");
    };
    let text = error.to_string();
    assert!(text.contains("account.timezone") && text.contains("Mars/Olympus"), "{text}");
}
