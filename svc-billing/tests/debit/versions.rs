//! A mandate counts what changes of it, its verification included, and the log has it as it is shown.

use chrono::TimeDelta;
use proto::billing::{Mandate, MandateStatus};
use serde_json::{Value, json};

use crate::world::{World, checkout};

/// The version of the mandate. Every version must be in the log, and the last one as it is shown.
async fn version(world: &World) -> i64 {
    let (shown, logged) = world.logged_mandate().await;
    let versions: Vec<i64> = logged.iter().map(version_of).collect();
    assert_eq!(versions, (1..=version_of(&shown)).collect::<Vec<_>>());
    assert_eq!(logged.last(), Some(&shown));
    version_of(&shown)
}

fn version_of(mandate: &Mandate) -> i64 {
    mandate.meta.as_ref().unwrap().version
}

#[tokio::test]
async fn a_client_that_was_never_asked_has_version_0() {
    let world = World::idle().await;
    let meta = world.mandate().await["meta"].clone();
    assert_eq!((&meta["version"], &meta["updated_at"]), (&json!(0), &Value::Null));
    assert_eq!(world.logged_mandate().await.1, []);
}

#[tokio::test]
async fn a_mandate_counts_what_is_shown_of_it() {
    let world = World::idle().await;
    let asked = world.verify().await;
    let pending = version(&world).await;
    assert_eq!(version(&world).await, pending, "reading changes nothing");
    world.clock.advance(TimeDelta::seconds(1));
    world.act(&checkout(&asked), "authorise").await;
    let authorized = version(&world).await;
    assert!(authorized > pending);

    let before = world.mandate().await["meta"].clone();
    world.clock.advance(TimeDelta::minutes(6));
    assert_eq!(world.mandate().await["meta"], before, "fetched again, with nothing new");
    assert_eq!(version(&world).await, authorized);

    world.act(&checkout(&asked), "revoke").await;
    world.clock.advance(TimeDelta::minutes(6));
    assert_eq!(version(&world).await, authorized + 1);
    assert_eq!(world.logged_mandate().await.0.mandate_status(), MandateStatus::None);
    world.verify().await;
    assert!(version(&world).await > authorized + 1, "a new verification is shown");
}

#[tokio::test]
async fn a_verification_that_ends_is_a_change_of_the_mandate() {
    let world = World::idle().await;
    for act in ["refuse", "expire"] {
        let asked = world.verify().await;
        let pending = version(&world).await;
        world.act(&checkout(&asked), act).await;
        assert_eq!(version(&world).await, pending + 1, "{act}");
    }
}

#[tokio::test]
async fn a_canceled_verification_that_is_not_the_latest_changes_nothing() {
    let world = World::start().await;
    let first = world.verify().await;
    world.verify().await;
    let gone = async || world.page(&checkout(&first)).await.contains("Geannuleerd");
    chassis_testing::eventually("the first one is canceled", gone).await;
    let open = "select count(*) from billing.online_payment where is_open";
    chassis_testing::eventually("that is known here", async || world.count(open).await == 1).await;
    let meta = world.logged_mandate().await.0.meta.unwrap();
    assert_eq!(meta.verification_status.as_deref(), Some("open"), "the second one counts");
    version(&world).await;
}
