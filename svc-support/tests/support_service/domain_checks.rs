//! The daily check of email domains.

use chassis_testing::eventually;
use chrono::{DateTime, TimeDelta, Utc};
use proto::support::{EmailDomainDetail, EmailDomainType, GetEmailDomainRequest};

use crate::dns::Dns;
use crate::domains::{add, domains, found, is_verified, keys, set, verify, world};
use crate::world::{User, World};

const HOST: &str = "bakery.example";
const DAY: TimeDelta = TimeDelta::days(1);

async fn get(user: &User) -> EmailDomainDetail {
    let request = GetEmailDomainRequest { domain: HOST.into(), ..Default::default() };
    domains(user).get_email_domain(user.mesh.request(request)).await.unwrap().into_inner().data.unwrap()
}

/// The domain after the check of the next day.
async fn next_day(world: &mut World, user: &User) -> EmailDomainDetail {
    let before = get(user).await.checked_at;
    world.resume_after(DAY).await;
    eventually("the domain was checked", async || get(user).await.checked_at != before).await;
    get(user).await
}

fn version(detail: &EmailDomainDetail) -> i64 {
    detail.domain.as_ref().unwrap().version
}

/// Whether every service can sign the domain's mail.
async fn signs(world: &World, user: &User) -> bool {
    let mut known = Vec::new();
    for channel in [world.support.channel(), world.relations.channel()] {
        known.push(keys(user, channel).await == [HOST]);
    }
    assert_eq!(known[0], known[1], "services differ");
    known[0]
}

#[tokio::test]
async fn a_domain_whose_records_were_set_is_verified_without_a_request() {
    let dns = Dns::start().await;
    let mut world = world(&dns).await;
    let user = world.user().await;
    let added = add(&user, HOST, EmailDomainType::Full).await.unwrap();
    assert!(!is_verified(&next_day(&mut world, &user).await), "nothing is set");
    set(&dns, &added);
    assert!(is_verified(&next_day(&mut world, &user).await));
    assert!(signs(&world, &user).await);
}

#[tokio::test]
async fn a_verified_domain_has_three_days_to_get_its_records_back() {
    let dns = Dns::start().await;
    let mut world = world(&dns).await;
    let user = world.user().await;
    let added = add(&user, HOST, EmailDomainType::Sending).await.unwrap();
    set(&dns, &added);
    verify(&user, HOST).await.unwrap();
    dns.forget(&added.records[0].name);
    let missed = next_day(&mut world, &user).await;
    assert!(is_verified(&missed));
    assert_eq!(version(&missed), 2, "a check that changes nothing is not counted");
    assert_eq!(found(&missed), [""; 0], "the missing records are reported");
    set(&dns, &added);
    assert!(is_verified(&next_day(&mut world, &user).await));
    dns.forget(&added.records[0].name);
    for _ in 0..3 {
        assert!(is_verified(&next_day(&mut world, &user).await), "the grace period starts again");
        assert!(signs(&world, &user).await);
    }
    let pending = next_day(&mut world, &user).await;
    assert!(!is_verified(&pending));
    assert_eq!(version(&pending), 3);
    assert!(!signs(&world, &user).await);
}

#[tokio::test]
async fn a_dns_that_does_not_answer_leaves_a_domain_as_it_is() {
    let dns = Dns::start().await;
    let mut world = world(&dns).await;
    let user = world.user().await;
    let added = add(&user, HOST, EmailDomainType::Sending).await.unwrap();
    set(&dns, &added);
    let verified = verify(&user, HOST).await.unwrap();
    drop(dns);
    world.resume_after(TimeDelta::days(10)).await;
    eventually("the check was tried", async || due_at(&world, &user).await > world.clock.now()).await;
    assert_eq!(due_at(&world, &user).await, world.clock.now() + TimeDelta::hours(1));
    assert_eq!(get(&user).await, verified);
    assert!(signs(&world, &user).await);
}

async fn due_at(world: &World, user: &User) -> DateTime<Utc> {
    sqlx::query_scalar("select check_at from support.domain where account_id = $1")
        .bind(user.account().id)
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_domain_whose_mail_goes_to_another_account_stays_pending() {
    let dns = Dns::start().await;
    let mut world = world(&dns).await;
    let (owner, rival) = (world.user().await, world.user().await);
    set(&dns, &add(&owner, HOST, EmailDomainType::Full).await.unwrap());
    verify(&owner, HOST).await.unwrap();
    set(&dns, &add(&rival, HOST, EmailDomainType::Full).await.unwrap());
    assert!(!is_verified(&next_day(&mut world, &rival).await));
    assert!(!signs(&world, &rival).await);
    assert!(is_verified(&get(&owner).await) && signs(&world, &owner).await);
}
