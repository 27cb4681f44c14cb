//! Certificate files that are missing, malformed or do not match.

use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

use super::*;

struct Pair {
    folder: TempDir,
    settings: TlsSettings,
}

impl Pair {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| Some(folder.path().join(name));
        let (tls_cert, tls_key) = (path("cert.pem"), path("key.pem"));
        let settings = TlsSettings { tls_cert, tls_key, tls_reload_ms: 3_600_000, ..TlsSettings::default() };
        Self { folder, settings }
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }
}

fn new_pair() -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["a-name".to_owned()]).unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

#[tokio::test]
async fn files_that_are_no_pair_leave_the_old_one_in_use() {
    let pair = Pair::new();
    let ((cert, key), (next_cert, next_key)) = (new_pair(), new_pair());
    pair.write("cert.pem", &cert);
    pair.write("key.pem", &key);
    let tls = Tls::open(&pair.settings).unwrap();
    assert_eq!(tls.0.reload(), Ok(false), "nothing is new");

    pair.write("cert.pem", &next_cert);
    assert!(tls.0.reload().unwrap_err().contains("not usable"));
    std::fs::remove_file(pair.folder.path().join("key.pem")).unwrap();
    assert!(tls.0.reload().unwrap_err().contains("key.pem cannot be read"));
    pair.write("key.pem", "nonsense");
    assert!(tls.0.reload().unwrap_err().contains("key.pem has no usable key"));
    assert_eq!(tls.0.used.load().files.cert.as_deref(), Some(cert.as_bytes()));

    pair.write("key.pem", &next_key);
    assert_eq!(tls.0.reload(), Ok(true));
    assert_eq!(tls.0.used.load().files.cert.as_deref(), Some(next_cert.as_bytes()));
}

#[tokio::test]
async fn a_process_does_not_start_with_half_of_what_it_needs() {
    let pair = Pair::new();
    let half = TlsSettings { tls_key: None, ..pair.settings.clone() };
    assert_eq!(Tls::open(&half).err().as_deref(), Some("TLS_CERT and TLS_KEY must be set together"));
    assert!(Tls::open(&pair.settings).err().unwrap().contains("cert.pem cannot be read"));
    let (cert, key) = new_pair();
    pair.write("cert.pem", &key);
    pair.write("key.pem", &key);
    assert!(Tls::open(&pair.settings).err().unwrap().contains("cert.pem has no certificate"));
    pair.write("cert.pem", &cert);
    assert!(Tls::open(&pair.settings).is_ok());
}
