//! Certificates of internal teams, which have their own authorities, for example one in each team's namespace. Such an
//! authority can write any name into a certificate, so it is trusted for the names of teams only.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

use super::callers;

/// The prefix of the names of teams.
const TEAM: &str = "team-";

/// Trusts the authorities of the mesh for any name, and those of teams for the names of teams.
#[derive(Debug)]
pub(super) struct MeshOrTeams {
    mesh: Arc<dyn ClientCertVerifier>,
    teams: Arc<dyn ClientCertVerifier>,
    authorities: Vec<DistinguishedName>,
}

impl MeshOrTeams {
    pub(super) fn new(mesh: Arc<dyn ClientCertVerifier>, teams: Arc<dyn ClientCertVerifier>) -> Self {
        let authorities = [mesh.root_hint_subjects(), teams.root_hint_subjects()].concat();
        Self { mesh, teams, authorities }
    }
}

impl ClientCertVerifier for MeshOrTeams {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.authorities
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let of_mesh = self.mesh.verify_client_cert(certificate, intermediates, now);
        of_mesh.or_else(|_| {
            let of_team = self.teams.verify_client_cert(certificate, intermediates, now)?;
            let names = callers::names(certificate);
            if !names.is_empty() && names.iter().all(|name| name.starts_with(TEAM)) {
                return Ok(of_team);
            }
            tracing::warn!(?names, "a team's authority issued a certificate for a name that is not a team's");
            Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.mesh.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.mesh.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.mesh.supported_verify_schemes()
    }
}
