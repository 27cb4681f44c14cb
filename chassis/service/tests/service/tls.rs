//! TLS inside the mesh: both sides show a certificate of the same authority, or nothing is said; files that are replaced
//! are used without a restart; and only those who are named are served.

#![allow(clippy::unwrap_used, reason = "a test stops where its fact is false")]

use std::sync::Arc;

use chassis_rpc::peer::Peer;
use chassis_rpc::tls::{Tls, TlsSettings};
use chassis_testing::authority::{self, Authority, certificate_for};
use chassis_testing::bare::database;
use chassis_testing::{Started, TestCaller, TestDatabase, eventually};
use futures::FutureExt;
use proto::api::ProvisionAccountRequest;
use proto::api::provisioning_service_client::ProvisioningServiceClient;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;

async fn start(database: &TestDatabase, tls: &TlsSettings) -> (Started, String) {
    let service = authority::start(database, tls).await;
    let url = format!("https://localhost:{}", service.address.port());
    (service, url)
}

fn channel(url: &str, tls: &TlsSettings) -> Channel {
    Peer::new("service", url, &Tls::open(tls).unwrap()).unwrap().channel()
}

fn health() -> HealthCheckRequest {
    HealthCheckRequest { service: String::new() }
}

async fn is_healthy(channel: &Channel) -> bool {
    HealthClient::new(channel.clone()).check(health()).await.is_ok()
}

async fn answers(url: &str, tls: &TlsSettings) -> bool {
    is_healthy(&channel(url, tls)).await
}

/// The certificate that a new connection is shown.
async fn shown(service: &Started, tls: &TlsSettings) -> CertificateDer<'static> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(tls.tls_ca.as_ref().unwrap()).unwrap()).unwrap();
    let own = CertificateDer::from_pem_file(tls.tls_cert.as_ref().unwrap()).unwrap();
    let key = PrivateKeyDer::from_pem_file(tls.tls_key.as_ref().unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![own], key)
        .unwrap();
    let stream = tokio::net::TcpStream::connect(service.address).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let stream = connector.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap();
    stream.get_ref().1.peer_certificates().unwrap()[0].clone()
}

#[tokio::test]
async fn only_processes_with_a_certificate_of_the_authority_are_answered() {
    let database = database().await;
    let (ours, foreign) = (Authority::create(), Authority::create());
    let server = ours.settings("localhost", &ours);
    let (service, url) = start(&database, &server).await;

    assert!(answers(&url, &ours.settings("client", &ours)).await);
    assert!(!answers(&url, &foreign.settings("stranger", &ours)).await, "another authority's certificate");
    assert!(!answers(&url, &ours.settings("wary", &foreign)).await, "a caller that trusts another authority");
    let bare = TlsSettings { tls_ca: server.tls_ca.clone(), ..TlsSettings::default() };
    assert!(!answers(&url, &bare).await, "no certificate");
    assert!(!answers(&service.url(), &TlsSettings::default()).await, "no TLS at all");
}

#[tokio::test]
async fn a_certificate_that_has_ended_or_not_begun_is_refused() {
    let (database, ours) = (database().await, Authority::create());
    let (_service, url) = start(&database, &ours.settings("localhost", &ours)).await;
    let client = ours.settings("client", &ours);
    assert!(answers(&url, &client).await);
    let day = |year| rcgen::date_time_ymd(year, 1, 1);
    for (from, until) in [(day(2001), day(2002)), (day(2901), day(2902))] {
        let mut params = certificate_for("client");
        (params.not_before, params.not_after) = (from, until);
        ours.renew(&client, &params);
        assert!(!answers(&url, &client).await, "{from} to {until}");
    }
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_by_the_next_connection_while_calls_go_on() {
    let (database, ours) = (database().await, Authority::create());
    let server = ours.settings("localhost", &ours);
    let (service, url) = start(&database, &server).await;
    let client = ours.settings("client", &ours);
    let before = shown(&service, &client).await;
    let old = channel(&url, &client);
    let mut watching = HealthClient::new(old.clone()).watch(health()).await.unwrap().into_inner();
    watching.message().await.unwrap().expect("the first answer comes at once");

    ours.renew(&server, &certificate_for("localhost"));
    eventually("the new certificate is shown", async || shown(&service, &client).await != before).await;
    assert!(watching.message().now_or_never().is_none(), "the call that was in progress still is");
    assert!(is_healthy(&old).await, "the old connection goes on");
}

#[tokio::test]
async fn a_caller_uses_its_new_certificate_and_its_new_authorities_without_a_restart() {
    let database = database().await;
    let (ours, foreign) = (Authority::create(), Authority::create());
    let (_service, url) = start(&database, &ours.settings("localhost", &ours)).await;
    let client = foreign.settings("client", &foreign);
    let channel = channel(&url, &client);
    assert!(!is_healthy(&channel).await, "neither knows the other");
    ours.renew(&client, &certificate_for("client"));
    std::fs::write(client.tls_ca.as_ref().unwrap(), ours.issuer.pem()).unwrap();
    eventually("the caller is answered", async || is_healthy(&channel).await).await;
}

async fn provision(channel: &Channel) -> Result<(), Status> {
    let caller = TestCaller::mesh(&chassis_testing::account(), &chassis_testing::clock());
    let request = caller.request(ProvisionAccountRequest { name: "Bakery".to_owned() });
    ProvisioningServiceClient::new(channel.clone()).provision_account(request).await.map(drop)
}

async fn explore(channel: &Channel) -> Result<(), Status> {
    let request = ServerReflectionRequest::default();
    let mut client = ServerReflectionClient::new(channel.clone());
    client.server_reflection_info(futures::stream::iter([request])).await.map(drop)
}

#[tokio::test]
async fn only_named_callers_are_served_and_anyone_of_the_mesh_may_ask_for_health() {
    let (database, ours) = (database().await, Authority::create());
    let callers = ["gateway", "team-*"].map(str::to_owned).to_vec();
    let server = TlsSettings { tls_callers: callers, ..ours.settings("localhost", &ours) };
    let (_service, url) = start(&database, &server).await;
    for name in ["gateway", "team-reporting"] {
        let channel = channel(&url, &ours.settings(name, &ours));
        provision(&channel).await.unwrap();
        explore(&channel).await.unwrap();
    }
    let stranger = channel(&url, &ours.settings("svc-crm", &ours));
    for refused in [provision(&stranger).await, explore(&stranger).await] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
        assert!(refused.message().contains("svc-crm is not among those who may call"), "{refused:?}");
    }
    assert!(is_healthy(&stranger).await);
}
