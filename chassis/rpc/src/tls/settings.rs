//! What a process is told of TLS.

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

    /// PEM file with the authorities that other processes' certificates must come from; with it callers must show one (mTLS)
    #[arg(long, env = "TLS_CA", global = true)]
    pub tls_ca: Option<PathBuf>,

    /// PEM file with the authorities of internal teams, besides: their certificates are believed for names that begin with
    /// team-; a file that is not there yet is looked for again
    #[arg(long, env = "TLS_TEAM_CA", global = true)]
    pub tls_team_ca: Option<PathBuf>,

    /// Who may call when callers must show a certificate: names in their certificates, comma-separated; team-* for all that begin so
    #[arg(long, env = "TLS_CALLERS", value_delimiter = ',', global = true)]
    pub tls_callers: Vec<String>,

    /// How often these files are looked at, in milliseconds; what is new in them is used from the next connection on
    #[arg(long, env = "TLS_RELOAD_MS", default_value_t = 30_000, value_parser = clap::value_parser!(u64).range(1..), global = true)]
    pub tls_reload_ms: u64,
}
