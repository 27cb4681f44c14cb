//! Certificate authorities, and services with certificates that they issue.

#![expect(clippy::unwrap_used, reason = "a test that cannot get a certificate has to stop")]

use std::path::PathBuf;

use chassis_rpc::tls::TlsSettings;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

use super::bare::Bare;
use super::database::TestDatabase;
use super::fixtures::clock;
use super::running::{Started, start_with};

/// A certificate authority, and the folder with its files.
pub struct Authority {
    folder: TempDir,
    pub issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// Creates a self-signed authority.
    pub fn create() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { folder, issuer }
    }

    /// The file with the certificate of the authority.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Settings with a certificate of this authority for the name; they trust `trusted`.
    pub fn settings(&self, name: &str, trusted: &Self) -> TlsSettings {
        self.settings_for(&[name], trusted)
    }

    /// Settings with a certificate for several names.
    pub fn settings_for(&self, names: &[&str], trusted: &Self) -> TlsSettings {
        let path = |kind: &str| Some(self.folder.path().join(format!("{}.{kind}.pem", names.join("+"))));
        let settings = TlsSettings {
            tls_cert: path("cert"),
            tls_key: path("key"),
            tls_ca: Some(trusted.file()),
            tls_team_ca: None,
            tls_callers: vec!["*".to_owned()],
            tls_reload_ms: 10,
        };
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        self.renew(&settings, &CertificateParams::new(names).unwrap());
        settings
    }

    /// Replaces the files by a new key and certificate of this authority.
    pub fn renew(&self, settings: &TlsSettings, params: &CertificateParams) {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(settings.tls_key.as_ref().unwrap(), key.serialize_pem()).unwrap();
        std::fs::write(settings.tls_cert.as_ref().unwrap(), certificate.pem()).unwrap();
    }
}

pub fn certificate_for(name: &str) -> CertificateParams {
    CertificateParams::new(vec![name.to_owned()]).unwrap()
}

/// Starts a service with TLS.
pub async fn start(database: &TestDatabase, tls: &TlsSettings) -> Started {
    let files = [
        ("--tls-cert", &tls.tls_cert),
        ("--tls-key", &tls.tls_key),
        ("--tls-ca", &tls.tls_ca),
        ("--tls-team-ca", &tls.tls_team_ca),
    ];
    let files = files.iter().filter_map(|(flag, path)| Some([flag, path.as_ref()?.to_str()?]));
    let (callers, reload) = (tls.tls_callers.join(","), tls.tls_reload_ms.to_string());
    let others = [["--tls-callers", &callers], ["--tls-reload-ms", &reload]];
    let flags: Vec<&str> = files.chain(others).flatten().collect();
    start_with::<Bare>(database.url(), &clock(), &flags).await
}
