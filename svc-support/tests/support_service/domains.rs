//! Email domains: read over REST, managed over gRPC, verified against a real DNS server.

use chassis_testing::eventually;
use proto::api::ListMailKeysRequest;
use proto::api::mail_key_service_client::MailKeyServiceClient;
use proto::support::email_domain_service_client::EmailDomainServiceClient;
use proto::support::{
    AddEmailDomainRequest, DeleteEmailDomainRequest, EmailDomainDetail, EmailDomainStatus, EmailDomainType,
    GetEmailDomainRequest, TicketChannelInput, VerifyEmailDomainRequest,
};
use serde_json::json;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::dns::Dns;
use crate::world::{DOMAIN, User, World, header, mail, text};

pub(crate) fn domains(user: &User) -> EmailDomainServiceClient<Channel> {
    EmailDomainServiceClient::new(user.channel())
}

pub(crate) async fn add(
    user: &User,
    domain: &str,
    kind: EmailDomainType,
) -> Result<EmailDomainDetail, Status> {
    let request = AddEmailDomainRequest { domain: domain.into(), r#type: kind.into(), ..Default::default() };
    Ok(domains(user).add_email_domain(user.mesh.request(request)).await?.into_inner().data.unwrap())
}

pub(crate) async fn verify(user: &User, domain: &str) -> Result<EmailDomainDetail, Status> {
    let request = VerifyEmailDomainRequest { domain: domain.into(), ..Default::default() };
    Ok(domains(user).verify_email_domain(user.mesh.request(request)).await?.into_inner().data.unwrap())
}

pub(crate) fn is_verified(detail: &EmailDomainDetail) -> bool {
    detail.domain.as_ref().unwrap().status() == EmailDomainStatus::Verified
}

pub(crate) fn found(detail: &EmailDomainDetail) -> Vec<&str> {
    detail.records.iter().filter(|record| record.found).map(|record| record.purpose.as_str()).collect()
}

/// Sets what is required, as the owner of the domain would.
pub(crate) fn set(dns: &Dns, detail: &EmailDomainDetail) {
    for record in detail.records.iter().filter(|record| record.required) {
        match record.r#type.as_str() {
            "MX" => dns.mx(&record.name, record.value.rsplit(' ').next().unwrap()),
            _ => dns.txt(&record.name, &record.value),
        }
    }
}

pub(crate) async fn keys(user: &User, channel: Channel) -> Vec<String> {
    let request = user.mesh.request(ListMailKeysRequest {});
    let listed = MailKeyServiceClient::new(channel).list_mail_keys(request).await.unwrap().into_inner();
    listed.keys.into_iter().map(|key| key.domain).collect()
}

pub(crate) async fn world(dns: &Dns) -> World {
    World::with(&["--dns-server", &dns.address.to_string()]).await
}

#[tokio::test]
async fn a_domain_is_verified_by_its_dns_and_then_mail_comes_from_it() {
    let dns = Dns::start().await;
    let world = world(&dns).await;
    let user = world.user().await;
    let added = add(&user, "Bakery.Example", EmailDomainType::Sending).await.unwrap();
    let purposes: Vec<&str> = added.records.iter().map(|record| record.purpose.as_str()).collect();
    assert_eq!(purposes, ["dkim", "spf", "dmarc"]);
    assert!(!is_verified(&verify(&user, "bakery.example").await.unwrap()));
    let again = add(&user, "bakery.example", EmailDomainType::Sending).await.unwrap();
    assert_eq!(again.records, added.records, "the key stays");

    set(&dns, &added);
    dns.txt("_dmarc.bakery.example", "v=DMARC1; p=reject");
    let verified = verify(&user, "bakery.example").await.unwrap();
    assert!(is_verified(&verified));
    assert_eq!(found(&verified), ["dkim", "dmarc"]);
    for channel in [world.support.channel(), world.relations.channel()] {
        assert_eq!(keys(&user, channel).await, ["bakery.example"], "every service can sign");
    }
    let listed = user.api.get("/v1/email-domains?status=verified").await.expect(200);
    let domain = listed.at("/data/0");
    assert_eq!(
        domain,
        json!({"domain": "bakery.example", "subdomain": "", "status": "verified", "type": "sending",
               "created_at": domain["created_at"], "updated_at": domain["updated_at"], "version": 2})
    );

    let channel = TicketChannelInput {
        name: "Bakery".into(),
        email: "support@bakery.example".into(),
        ..Default::default()
    };
    user.add_channel(channel).await.unwrap();
    user.reply(&text(&user.ann().await, "id"), "Hello").await;
    eventually("the mail arrives", async || world.sink.received().len() == 1).await;
    let sent = world.sink.received().remove(0);
    assert_eq!(sent.sender, "support@bakery.example");
    assert!(header(&sent.message, "DKIM-Signature").unwrap().contains("d=bakery.example"));
}

#[tokio::test]
async fn a_domain_that_loses_its_record_is_pending_again() {
    let dns = Dns::start().await;
    let world = world(&dns).await;
    let user = world.user().await;
    let added = add(&user, "bakery.example", EmailDomainType::Full).await.unwrap();
    set(&dns, &added);
    assert!(is_verified(&verify(&user, "bakery.example").await.unwrap()));
    dns.forget(&added.records[0].name);
    assert!(!is_verified(&verify(&user, "bakery.example").await.unwrap()));
    for channel in [world.support.channel(), world.relations.channel()] {
        assert_eq!(keys(&user, channel).await, [""; 0]);
    }
    assert_eq!(user.api.get("/v1/email-domains?status=pending").await.at("/meta"), json!({"total": 1}));
    assert_eq!(user.api.get("/v1/email-domains?status=verified").await.at("/meta"), json!({"total": 0}));
    assert_eq!(user.api.get("/v1/email-domains?status=all").await.at("/meta"), json!({"total": 1}));
    assert_eq!(user.api.get("/v1/email-domains").await.at("/meta"), json!({"total": 1}));
    user.api.get("/v1/email-domains?status=lost").await.expect(422);
}

#[tokio::test]
async fn mail_to_a_verified_domain_comes_in_for_its_channels_only() {
    let dns = Dns::start().await;
    let world = world(&dns).await;
    let user = world.user().await;
    let channel = TicketChannelInput {
        name: "Bakery".into(),
        email: "support@bakery.example".into(),
        ..Default::default()
    };
    user.add_channel(channel).await.unwrap();
    let send =
        async |id: &str, to: &str| world.send("ann@client.example", &[to], &mail(id, "", "A", "x")).await;
    assert!(send("1@x", "support@bakery.example").await.is_err(), "not verified yet");
    let added = add(&user, "bakery.example", EmailDomainType::Full).await.unwrap();
    set(&dns, &added);
    assert!(is_verified(&verify(&user, "bakery.example").await.unwrap()));
    send("2@x", "Support+x@bakery.example").await.unwrap();
    assert!(send("3@x", "other@bakery.example").await.is_err());
    assert_eq!(user.api.get("/v1/tickets").await.at("/meta/total"), 1);

    let rival = world.user().await;
    let claim = add(&rival, "bakery.example", EmailDomainType::Full).await.unwrap();
    dns.txt(&claim.records[0].name, &claim.records[0].value);
    assert_eq!(verify(&rival, "bakery.example").await.unwrap_err().code(), Code::FailedPrecondition);

    let request = DeleteEmailDomainRequest { domain: "bakery.example".into(), ..Default::default() };
    domains(&user).delete_email_domain(user.mesh.request(request.clone())).await.unwrap();
    let gone = domains(&user).delete_email_domain(user.mesh.request(request)).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
    assert!(send("4@x", "support@bakery.example").await.is_err());
}

#[tokio::test]
async fn a_dns_that_does_not_answer_changes_nothing() {
    // A socket that never answers.
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let world = World::with(&["--dns-server", &silent.local_addr().unwrap().to_string()]).await;
    let user = world.user().await;
    add(&user, "bakery.example", EmailDomainType::Sending).await.unwrap();
    let status = verify(&user, "bakery.example").await.unwrap_err();
    assert!(matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded), "{status:?}");
}

#[tokio::test]
async fn malformed_domains_are_refused_and_missing_ones_not_found() {
    let world = World::new().await;
    let user = world.user().await;
    for wrong in ["", "localhost", "a b.example", "bücher.example", "-.example"] {
        let status = add(&user, wrong, EmailDomainType::Sending).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{wrong}");
    }
    let request = GetEmailDomainRequest { domain: DOMAIN.into(), ..Default::default() };
    let status = domains(&user).get_email_domain(user.mesh.request(request)).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert_eq!(verify(&user, DOMAIN).await.unwrap_err().code(), Code::NotFound);
}
