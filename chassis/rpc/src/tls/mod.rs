//! TLS inside the mesh. The certificate files are polled, so that the next connection uses a renewed certificate
//! without a restart; existing connections stay open. This module owns both sides of a handshake; [`Callers`] decides
//! who may call.

mod callers;
mod settings;
mod teams;
#[cfg(test)]
mod tests;
mod validity;

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use chrono::{DateTime, Utc};
use http::Uri;
use hyper_util::rt::TokioIo;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};
use tonic::transport::{Channel, Endpoint};

pub use callers::Callers;
pub use settings::TlsSettings;
use teams::MeshOrTeams;

const HTTP_2: &[u8] = b"h2";
/// A slower handshake is dropped, so that idle connections do not pile up.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// The certificates of this process. Cheap to clone; clones share them.
#[derive(Clone)]
pub struct Tls(Arc<Shared>);

struct Shared {
    settings: TlsSettings,
    used: ArcSwap<Used>,
}

/// The content of the files when they were last read.
#[derive(PartialEq, Eq)]
struct Files {
    cert: Option<Vec<u8>>,
    key: Option<Vec<u8>>,
    ca: Option<Vec<u8>>,
    team_ca: Option<Vec<u8>>,
}

/// The configuration of new handshakes, with the files it was built from.
struct Used {
    files: Files,
    client: Arc<ClientConfig>,
    /// `None` when this process serves without TLS.
    server: Option<Arc<ServerConfig>>,
    /// The time at which this process's certificate expires.
    end: Option<DateTime<Utc>>,
}

impl Tls {
    /// Reads the files that the settings name, and polls them until the last clone is dropped. Must be called inside
    /// the async runtime.
    pub fn open(settings: &TlsSettings) -> Result<Self, String> {
        if settings.tls_cert.is_some() != settings.tls_key.is_some() {
            return Err("TLS_CERT and TLS_KEY must be set together".to_owned());
        }
        let used = Used::new(settings, Files::read(settings)?)?;
        let shared = Arc::new(Shared { settings: settings.clone(), used: ArcSwap::from_pointee(used) });
        if settings.tls_cert.is_some() || settings.tls_ca.is_some() {
            let every = Duration::from_millis(settings.tls_reload_ms.max(1));
            tokio::spawn(keep_reloading(Arc::downgrade(&shared), every));
        }
        Ok(Self(shared))
    }

    /// Whether this process serves with TLS.
    pub fn serves(&self) -> bool {
        self.0.used.load().server.is_some()
    }

    /// The connection after its handshake; `None` when the handshake failed or took too long.
    pub async fn accept(&self, stream: TcpStream) -> Option<server::TlsStream<TcpStream>> {
        let used = self.0.used.load_full();
        used.accept(stream).await
    }

    /// A channel whose new connections use the current certificates. The server must present a certificate for `host`.
    /// The endpoint's own scheme must be `http`: otherwise tonic expects its own TLS configuration.
    pub(crate) fn channel(&self, endpoint: &Endpoint, host: &str) -> Result<Channel, String> {
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let shared = Arc::clone(&self.0);
        let connect = move |to: Uri| {
            let (used, name) = (shared.used.load_full(), name.clone());
            async move { used.connect(&to, name).await.map(TokioIo::new) }
        };
        Ok(endpoint.connect_with_connector_lazy(tower::service_fn(connect)))
    }
}

impl Shared {
    /// Uses the files as they are now. Returns whether they changed. The configuration is swapped only after the new
    /// one is complete: a certificate and key that do not match yet, or cannot be read, leave the old one in use.
    fn reload(&self) -> Result<bool, String> {
        let files = Files::read(&self.settings)?;
        if files == self.used.load().files {
            return Ok(false);
        }
        self.used.store(Arc::new(Used::new(&self.settings, files)?));
        Ok(true)
    }

    /// Called on every tick, because the first one may come before the metrics recorder is installed.
    fn measure(&self) {
        let end = self.used.load().end.map(|end| u32::try_from(end.timestamp()).unwrap_or(u32::MAX));
        if let Some(end) = end {
            metrics::gauge!("tls_certificate_end_timestamp_seconds").set(end);
        }
    }
}

async fn keep_reloading(shared: Weak<Shared>, every: Duration) {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(shared) = shared.upgrade() else { return };
        shared.measure();
        // File I/O blocks, so it must not run on a thread that serves requests.
        match tokio::task::spawn_blocking(move || shared.reload()).await {
            Ok(Ok(true)) => tracing::info!("certificates reloaded"),
            Ok(Ok(false)) => {}
            Ok(Err(reason)) => tracing::warn!(reason, "the certificates in use are kept"),
            Err(error) => tracing::error!(%error, "certificate reload task failed"),
        }
    }
}

impl Files {
    fn read(settings: &TlsSettings) -> Result<Self, String> {
        let read = |path: &Option<std::path::PathBuf>| path.as_deref().map(read_file).transpose();
        Ok(Self {
            cert: read(&settings.tls_cert)?,
            key: read(&settings.tls_key)?,
            ca: read(&settings.tls_ca)?,
            team_ca: settings.tls_team_ca.as_deref().map(read_if_exists).transpose()?.flatten(),
        })
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
}

/// A missing file is not an error: the first team may be added after this process starts.
fn read_if_exists(path: &Path) -> Result<Option<Vec<u8>>, String> {
    if path.exists() { read_file(path).map(Some) } else { Ok(None) }
}

impl Used {
    fn new(settings: &TlsSettings, files: Files) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = Arc::new(authorities(settings.tls_ca.as_deref(), files.ca.as_deref())?);
        let teams = authorities(settings.tls_team_ca.as_deref(), files.team_ca.as_deref())?;
        let own = own_certificate(settings, &files)?;
        let client = client_config(&provider, &roots, own.as_ref())?;
        let server = own.as_ref().map(|own| {
            let required = files.ca.is_some().then(|| callers(&provider, &roots, teams));
            server_config(&provider, required.transpose()?, own).map(Arc::new)
        });
        let server = server.transpose()?;
        let end = own.and_then(|own| validity::end(own.chain.first()?));
        Ok(Self { files, client: Arc::new(client), server, end })
    }

    async fn accept(&self, stream: TcpStream) -> Option<server::TlsStream<TcpStream>> {
        let acceptor = TlsAcceptor::from(Arc::clone(self.server.as_ref()?));
        match tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(error)) => {
                tracing::debug!(%error, "TLS handshake failed");
                None
            }
            Err(_) => None,
        }
    }

    async fn connect(
        &self,
        to: &Uri,
        name: ServerName<'static>,
    ) -> std::io::Result<client::TlsStream<TcpStream>> {
        let host = to.host().unwrap_or_default().trim_matches(['[', ']']);
        let stream = TcpStream::connect((host, to.port_u16().unwrap_or(443))).await?;
        stream.set_nodelay(true)?;
        let stream = TlsConnector::from(Arc::clone(&self.client)).connect(name, stream).await?;
        if stream.get_ref().1.alpn_protocol() == Some(HTTP_2) {
            return Ok(stream);
        }
        Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "the other side does not speak HTTP/2"))
    }
}

/// The certificate that this process presents, with its intermediates and its key.
struct OwnCertificate {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

fn own_certificate(settings: &TlsSettings, files: &Files) -> Result<Option<OwnCertificate>, String> {
    let (Some(cert), Some(key)) = (&files.cert, &files.key) else { return Ok(None) };
    let chain = certificates(settings.tls_cert.as_deref(), cert)?;
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|error| format!("{} has no usable key: {error}", shown(settings.tls_key.as_deref())))?;
    Ok(Some(OwnCertificate { chain, key }))
}

/// The trusted authorities; none when no file is set.
fn authorities(path: Option<&Path>, pem: Option<&[u8]>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in pem.map(|pem| certificates(path, pem)).transpose()?.unwrap_or_default() {
        roots
            .add(certificate)
            .map_err(|error| format!("{} has an unusable certificate: {error}", shown(path)))?;
    }
    Ok(roots)
}

/// The verifier of callers' certificates.
fn callers(
    provider: &Arc<CryptoProvider>,
    mesh: &Arc<RootCertStore>,
    teams: RootCertStore,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let of = |roots: &Arc<RootCertStore>| {
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(provider));
        verifier.build().map_err(|error| error.to_string())
    };
    let mesh = of(mesh)?;
    if teams.is_empty() {
        return Ok(mesh);
    }
    Ok(Arc::new(MeshOrTeams::new(mesh, of(&Arc::new(teams))?)))
}

/// All certificates of a file, which must contain at least one.
fn certificates(path: Option<&Path>, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|error| format!("{} cannot be parsed: {error}", shown(path)))?;
    if all.is_empty() { Err(format!("{} has no certificate", shown(path))) } else { Ok(all) }
}

fn shown(path: Option<&Path>) -> String {
    path.map(|path| path.display().to_string()).unwrap_or_default()
}

fn client_config(
    provider: &Arc<CryptoProvider>,
    roots: &Arc<RootCertStore>,
    own: Option<&OwnCertificate>,
) -> Result<ClientConfig, String> {
    let builder = ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(Arc::clone(roots));
    let mut config = match own {
        Some(OwnCertificate { chain, key }) => builder
            .with_client_auth_cert(chain.clone(), key.clone_key())
            .map_err(|error| format!("the certificate is not usable: {error}"))?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![HTTP_2.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}

/// With a verifier in `required`, callers must present a certificate.
fn server_config(
    provider: &Arc<CryptoProvider>,
    required: Option<Arc<dyn ClientCertVerifier>>,
    OwnCertificate { chain, key }: &OwnCertificate,
) -> Result<ServerConfig, String> {
    let builder = ServerConfig::builder_with_provider(Arc::clone(provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = match required {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder
        .with_single_cert(chain.clone(), key.clone_key())
        .map_err(|error| format!("the certificate is not usable: {error}"))?;
    config.alpn_protocols = vec![HTTP_2.to_vec()];
    // A resumed session would keep trusting a certificate that has expired. Connections are few and long-lived, so
    // full handshakes cost little.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}
