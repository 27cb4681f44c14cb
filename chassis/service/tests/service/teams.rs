//! Internal teams that call from a namespace of their own, as a cluster has it: the mesh has an authority, whose
//! certificates name a service with its namespace; a team has another, of whose certificates the mesh believes those for
//! the names of teams. Only the certificates of the authorities themselves are known on the other side.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::sync::Arc;

use chassis_rpc::tls::TlsSettings;
use chassis_testing::authority::{Authority, start};
use chassis_testing::bare::database;
use chassis_testing::{Started, TestCaller, eventually};
use hyper_util::rt::TokioIo;
use proto::api::ProvisionAccountRequest;
use proto::api::provisioning_service_client::ProvisioningServiceClient;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::Code;
use tonic::transport::Endpoint;

const SHORT: &str = "svc-bare";
const FULL: [&str; 2] = ["svc-bare.administration.svc", "svc-bare.administration.svc.cluster.local"];

/// What the service has: its names as the component `mtls` writes them, and who may call.
fn served(mesh: &Authority, teams: &std::path::Path) -> TlsSettings {
    TlsSettings {
        tls_team_ca: Some(teams.to_owned()),
        tls_callers: vec!["gateway".to_owned(), "team-*".to_owned()],
        ..mesh.settings_for(&[SHORT, FULL[0], FULL[1]], mesh)
    }
}

/// How a call went.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Served,
    /// The certificate is believed, and its name is not among the callers'.
    NotNamed,
    /// One side does not believe the other's certificate.
    NotConnected,
}

/// A call to the service by this name, whose address the cluster's DNS would know.
async fn call(service: &Started, host: &'static str, tls: &TlsSettings) -> Outcome {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(tls.tls_ca.as_ref().unwrap()).unwrap()).unwrap();
    let own = CertificateDer::from_pem_file(tls.tls_cert.as_ref().unwrap()).unwrap();
    let key = PrivateKeyDer::from_pem_file(tls.tls_key.as_ref().unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.unwrap().with_root_certificates(roots).with_client_auth_cert(vec![own], key);
    let mut config = config.unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let (connector, address) = (TlsConnector::from(Arc::new(config)), service.address);
    let connect = tower::service_fn(move |_| {
        let connector = connector.clone();
        async move {
            let stream = TcpStream::connect(address).await?;
            connector.connect(ServerName::try_from(host).unwrap(), stream).await.map(TokioIo::new)
        }
    });
    let channel = Endpoint::from_static("http://service").connect_with_connector_lazy(connect);
    let caller = TestCaller::mesh(&chassis_testing::account(), &chassis_testing::clock());
    let request = caller.request(ProvisionAccountRequest { name: "Bakery".to_owned() });
    let answer = ProvisioningServiceClient::new(channel).provision_account(request).await;
    match answer.map_err(|status| status.code()) {
        Ok(_) => Outcome::Served,
        Err(Code::PermissionDenied) => Outcome::NotNamed,
        // By the side that hears of it, before or after the handshake is over for it.
        Err(Code::Unavailable | Code::Unknown) => Outcome::NotConnected,
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_team_calls_with_a_certificate_of_its_own_authority_by_the_full_name_of_a_service() {
    let (database, mesh, team) = (database().await, Authority::create(), Authority::create());
    let service = start(&database, &served(&mesh, &team.file())).await;
    let reporting = team.settings("team-reporting", &mesh);
    for host in [FULL[0], FULL[1], SHORT] {
        assert_eq!(call(&service, host, &reporting).await, Outcome::Served, "{host}");
    }
    assert_eq!(
        call(&service, SHORT, &mesh.settings("gateway", &mesh)).await,
        Outcome::Served,
        "the mesh goes on"
    );
    let elsewhere = "svc-bare.staging.svc";
    assert_eq!(
        call(&service, elsewhere, &reporting).await,
        Outcome::NotConnected,
        "another namespace's name"
    );
}

#[tokio::test]
async fn an_authority_of_a_team_makes_nobody_but_teams() {
    let (database, mesh, team) = (database().await, Authority::create(), Authority::create());
    let service = start(&database, &served(&mesh, &team.file())).await;
    let stranger = Authority::create();
    for (refused, why) in [
        (team.settings("gateway", &mesh), "the name of a program"),
        (team.settings_for(&["team-reporting", "gateway"], &mesh), "the name of a program besides"),
        (team.settings_for(&[], &mesh), "no name"),
        (stranger.settings("team-reporting", &mesh), "an authority that nobody knows"),
    ] {
        assert_eq!(call(&service, FULL[0], &refused).await, Outcome::NotConnected, "{why}");
    }
    let unnamed = mesh.settings("svc-crm", &mesh);
    assert_eq!(call(&service, SHORT, &unnamed).await, Outcome::NotNamed, "not among the callers");
}

#[tokio::test]
async fn the_authority_of_a_team_that_comes_later_is_believed_without_a_restart_until_it_is_taken_out() {
    let (database, mesh, team) = (database().await, Authority::create(), Authority::create());
    let folder = tempfile::tempdir().unwrap();
    let teams = folder.path().join("teams.pem");
    let service = start(&database, &served(&mesh, &teams)).await;
    let reporting = team.settings("team-reporting", &mesh);
    assert_eq!(call(&service, FULL[0], &reporting).await, Outcome::NotConnected);
    std::fs::copy(team.file(), &teams).unwrap();
    eventually("it is believed", async || call(&service, FULL[0], &reporting).await == Outcome::Served).await;
    std::fs::remove_file(&teams).unwrap();
    eventually("it is not any more", async || {
        call(&service, FULL[0], &reporting).await == Outcome::NotConnected
    })
    .await;
}
