//! The TLS settings of a process.

use std::path::PathBuf;

use clap::Args;

/// TLS inside the mesh. Off unless a certificate is set.
#[derive(Args, Clone, Debug, Default)]
pub struct TlsSettings {
    /// PEM file with the certificate of this process; switches TLS on
    #[arg(long, env = "TLS_CERT", global = true)]
    pub tls_cert: Option<PathBuf>,

    /// PEM file with the key of that certificate
    #[arg(long, env = "TLS_KEY", global = true)]
    pub tls_key: Option<PathBuf>,

    /// PEM file with the authorities of other processes' certificates; when set, callers must present one (mTLS)
    #[arg(long, env = "TLS_CA", global = true)]
    pub tls_ca: Option<PathBuf>,

    /// PEM file with the authorities of internal teams: their certificates are accepted for names that begin with
    /// team-; the file may be created later
    #[arg(long, env = "TLS_TEAM_CA", global = true)]
    pub tls_team_ca: Option<PathBuf>,

    /// Names in the certificates of callers that are accepted, comma-separated; team-* for all with this prefix
    #[arg(long, env = "TLS_CALLERS", value_delimiter = ',', global = true)]
    pub tls_callers: Vec<String>,

    /// How often these files are read, in milliseconds; the next connection uses the new content
    #[arg(long, env = "TLS_RELOAD_MS", default_value_t = 30_000, value_parser = clap::value_parser!(u64).range(1..), global = true)]
    pub tls_reload_ms: u64,
}
