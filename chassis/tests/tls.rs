//! TLS inside the mesh: both sides show a certificate of the same authority, or nothing is said.

#![allow(clippy::unwrap_used, reason = "a test stops where its fact is false")]

mod support;

use chassis::config::TlsSettings;
use chassis::peer::Peer;
use chassis::testing;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use support::{Bare, database};
use tempfile::TempDir;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

/// A certificate authority with its folder.
struct Authority {
    folder: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { folder, issuer }
    }

    /// Settings with a certificate of this authority that trust `trusted`.
    fn settings(&self, name: &str, trusted: &Self) -> TlsSettings {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let path = |kind: &str| self.folder.path().join(format!("{name}.{kind}.pem"));
        std::fs::write(path("cert"), certificate.pem()).unwrap();
        std::fs::write(path("key"), key.serialize_pem()).unwrap();
        TlsSettings {
            tls_cert: Some(path("cert")),
            tls_key: Some(path("key")),
            tls_ca: Some(trusted.folder.path().join("ca.pem")),
        }
    }
}

async fn answers(url: &str, tls: &TlsSettings) -> bool {
    let peer = Peer::new("service", url, tls).unwrap();
    let request = HealthCheckRequest { service: String::new() };
    HealthClient::new(peer.channel()).check(request).await.is_ok()
}

#[tokio::test]
async fn only_processes_with_a_certificate_of_the_authority_are_answered() {
    let database = database().await;
    let (ours, foreign) = (Authority::new(), Authority::new());
    let server = ours.settings("server", &ours);
    let text = |path: &Option<std::path::PathBuf>| path.as_ref().unwrap().to_str().unwrap().to_owned();
    let (cert, key, ca) = (text(&server.tls_cert), text(&server.tls_key), text(&server.tls_ca));
    let flags = ["--tls-cert", &cert, "--tls-key", &key, "--tls-ca", &ca];
    let service = testing::start_with::<Bare>(database.url(), &testing::clock(), &flags).await;
    let url = format!("https://localhost:{}", service.address.port());

    assert!(answers(&url, &ours.settings("client", &ours)).await);
    assert!(!answers(&url, &foreign.settings("stranger", &ours)).await, "another authority's certificate");
    assert!(!answers(&url, &ours.settings("wary", &foreign)).await, "a caller that trusts another authority");
    let bare = TlsSettings { tls_ca: server.tls_ca.clone(), ..TlsSettings::default() };
    assert!(!answers(&url, &bare).await, "no certificate");
    assert!(!answers(&service.url(), &TlsSettings::default()).await, "no TLS at all");
}
