//! Which callers this process accepts, by the names in their certificates.

use http::Extensions;
use tonic::Status;
use tonic::transport::server::{TcpConnectInfo, TlsConnectInfo};
use webpki::EndEntityCert;

use super::settings::TlsSettings;

/// Names in certificates: exact names, and prefixes that end with `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callers(Vec<String>);

impl Callers {
    /// `None` where callers present no certificate, so that there are no names to check.
    pub fn of(settings: &TlsSettings) -> Result<Option<Self>, String> {
        if settings.tls_cert.is_none() || settings.tls_ca.is_none() {
            return Ok(None);
        }
        let names = settings.tls_callers.iter().map(|name| name.trim().to_owned());
        let names: Vec<String> = names.filter(|name| !name.is_empty()).collect();
        if names.is_empty() {
            return Err("TLS_CALLERS must name those who may call (the names in their certificates, comma-separated) \
                        when TLS_CA makes them show a certificate"
                .to_owned());
        }
        Ok(Some(Self(names)))
    }

    /// Refuses a request whose connection does not belong to one of these callers.
    pub(crate) fn allow(&self, connection: &Extensions) -> Result<(), Status> {
        let info = connection.get::<TlsConnectInfo<TcpConnectInfo>>();
        let certificates = info.and_then(TlsConnectInfo::peer_certs);
        let names = certificates.and_then(|chain| Some(names(chain.first()?))).unwrap_or_default();
        if names.iter().any(|name| self.has(name)) {
            return Ok(());
        }
        let name = if names.is_empty() { "Nobody".to_owned() } else { names.join(", ") };
        Err(Status::permission_denied(format!(
            "{name} is not among those who may call this service. Its operator says who is (TLS_CALLERS)."
        )))
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => pattern == name,
        })
    }
}

/// The names in a certificate: DNS names and URIs, such as SPIFFE ids.
pub(super) fn names(certificate: &rustls::pki_types::CertificateDer<'_>) -> Vec<String> {
    let Ok(certificate) = EndEntityCert::try_from(certificate) else { return Vec::new() };
    let names = certificate.valid_dns_names().chain(certificate.valid_uri_names());
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn callers(names: &[&str]) -> Result<Option<Callers>, String> {
        let tls_callers = names.iter().map(|name| (*name).to_owned()).collect();
        let (tls_cert, tls_ca) = (Some("cert.pem".into()), Some("ca.pem".into()));
        Callers::of(&TlsSettings { tls_cert, tls_ca, tls_callers, ..TlsSettings::default() })
    }

    #[test]
    fn a_name_is_exact_unless_it_ends_with_a_star() {
        let callers =
            callers(&["gateway", " svc-work ", "team-*", "spiffe://mesh/sa/gateway"]).unwrap().unwrap();
        for allowed in ["gateway", "svc-work", "team-reporting", "team-", "spiffe://mesh/sa/gateway"] {
            assert!(callers.has(allowed), "{allowed}");
        }
        for refused in
            ["", "gateway2", "gatewa", "svc-workers", "tea", "a-team-b", "spiffe://mesh/sa/gateway/x"]
        {
            assert!(!callers.has(refused), "{refused}");
        }
    }

    #[test]
    fn whoever_wants_certificates_must_say_whose() {
        for none in [&[][..], &["", " "]] {
            assert!(callers(none).unwrap_err().contains("TLS_CALLERS"));
        }
        assert_eq!(Callers::of(&TlsSettings::default()), Ok(None), "without TLS there are no names");
    }

    #[test]
    fn a_connection_without_a_certificate_is_nobodys() {
        let refused = callers(&["*"]).unwrap().unwrap().allow(&Extensions::new()).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::PermissionDenied);
    }
}
