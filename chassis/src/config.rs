//! Configuration: every setting is a flag and an environment variable, and `--help` shows both with the default. The
//! variable's name with `_FILE` after it names a file that has the value.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use chrono::TimeDelta;
use clap::{Arg, Args, Command, ValueEnum};

use crate::connections::ConnectionSettings;
use crate::db::Address;
use crate::outbox::Listener;
use crate::worker::Timing;

/// Where the process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Environment {
    /// One machine, no real business: what helps a developer is on.
    Development,
    /// Nothing is on that would be a danger to a business: no reflection, no payment sandbox by itself, no requests to
    /// private networks, no mail into files.
    Production,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Pretty,
    /// One JSON object a line.
    Json,
}

/// Characters of a secret: keys are derived from it.
const MIN_SECRET: usize = 32;

/// What every process of the mesh can be told.
#[derive(Args, Clone, Debug)]
pub struct Settings {
    /// Address to listen on
    #[arg(long, env = "LISTEN", default_value = "127.0.0.1:7701", global = true)]
    pub listen: SocketAddr,

    /// Address for /metrics, /healthz and /readyz; for operators only
    #[arg(long, env = "METRICS_LISTEN", default_value = "127.0.0.1:7711", global = true)]
    pub metrics_listen: SocketAddr,

    /// The Postgres database, as postgres://user:password@host:port/database
    #[arg(
        long,
        env = "DATABASE_URL",
        default_value = "postgres://localhost/admin",
        hide_env_values = true,
        global = true
    )]
    pub database_url: String,

    /// Most database connections of this process for its work; one more asks whether the database answers
    #[arg(long, env = "DATABASE_POOL", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=100), global = true)]
    pub database_pool: u32,

    /// A pooler in transaction mode is between here and Postgres, as PgBouncer; search path and limits are then settings
    /// of the role
    #[arg(long, env = "DATABASE_POOLER", default_value_t = false, action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true", require_equals = true, global = true)]
    pub database_pooler: bool,

    /// Secret that signs context tokens, the same for the whole mesh; several, comma-separated, to rotate: the first signs, all verify
    #[arg(long, env = "CONTEXT_SECRET", default_value = "", hide_env_values = true, global = true)]
    pub context_secret: String,

    /// Where this runs; in development the gRPC services can be explored by reflection, and mail can go to files
    #[arg(long, env = "ENVIRONMENT", default_value = "production", global = true)]
    pub environment: Environment,

    /// What to log: a level (error, warn, info, debug, trace) or a filter such as info,gateway=debug
    #[arg(long, env = "LOG", default_value = "info", global = true)]
    pub log: String,

    /// How to log
    #[arg(long, env = "LOG_FORMAT", default_value = "pretty", global = true)]
    pub log_format: LogFormat,

    /// OTLP/gRPC endpoint that traces are sent to, for example http://localhost:4317; empty: nowhere
    #[arg(long, env = "OTLP_ENDPOINT", default_value = "", global = true)]
    pub otlp_endpoint: String,

    /// Most calls in progress; beyond them a call is told at once to come back
    #[arg(long, env = "MAX_IN_FLIGHT", default_value_t = 512, global = true)]
    pub max_in_flight: usize,

    /// Longest time for a call that brings no deadline of its own, in milliseconds
    #[arg(long, env = "DEADLINE_MS", default_value_t = 10_000, global = true)]
    pub deadline_ms: u64,

    /// First stage of a stop: answer "not ready" for so many milliseconds while still serving
    #[arg(long, env = "DRAIN_MS", default_value_t = 0, global = true)]
    pub drain_ms: u64,

    /// Second stage of a stop: finish what is in progress within so many milliseconds
    #[arg(long, env = "GRACE_MS", default_value_t = 15_000, global = true)]
    pub grace_ms: u64,

    /// How long the background work of a process stays its own without a sign of life, in milliseconds; then another
    /// process takes it up
    #[arg(long, env = "LEASE_MS", default_value_t = 15_000, value_parser = clap::value_parser!(u32).range(1_000..=600_000), global = true)]
    pub lease_ms: u32,

    /// Days that `purge-audit` leaves entries of the audit log; 0: for ever
    #[arg(long, env = "AUDIT_DAYS", default_value_t = 400, global = true)]
    pub audit_days: u16,

    #[command(flatten)]
    pub connections: ConnectionSettings,

    #[command(flatten)]
    pub tls: TlsSettings,
}

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

/// What only services have: listeners of their events, mail and files.
#[derive(Args, Clone, Debug)]
pub struct ServiceSettings {
    /// Who gets the events of this service: name=url, comma-separated; name=url;type;type for some types only;
    /// name=url|url for one with replicas
    #[arg(long, env = "LISTENERS", value_delimiter = ',', global = true)]
    pub listeners: Vec<Listener>,

    /// Other services: name=url, comma-separated; name=url|url for one with replicas
    #[arg(long, env = "PEERS", value_delimiter = ',', global = true)]
    pub peers: Vec<PeerAddress>,

    /// Server that mail is sent through, for example smtps://user:password@host:465 (TLS) or
    /// smtp://user:password@host:587?tls=required (STARTTLS); empty: mail waits, in development it goes to files
    #[arg(long, env = "SMTP_URL", default_value = "", hide_env_values = true, global = true)]
    pub smtp_url: String,

    /// Where the gateway is reached from outside; links to pages and files begin with it
    #[arg(long, env = "PUBLIC_URL", default_value = "http://127.0.0.1:7700", global = true)]
    pub public_url: String,

    /// Folder for mail while there is no server, in development
    #[arg(long, env = "MAIL_DIR", default_value = ".local/mail", global = true)]
    pub mail_dir: PathBuf,

    /// Address that mail comes from when the sender's own domain has no key to sign with
    #[arg(long, env = "MAIL_FROM", default_value = "no-reply@localhost", global = true)]
    pub mail_from: String,

    /// Folder for files while there is no bucket
    #[arg(long, env = "FILES_DIR", default_value = ".local/files", global = true)]
    pub files_dir: PathBuf,

    /// Largest file that is taken in, in bytes; at most 16 MiB
    #[arg(long, env = "FILES_MAX_BYTES", default_value_t = LARGEST_FILE, value_parser = file_size, global = true)]
    pub files_max_bytes: usize,

    /// S3 bucket for files; empty: they go to the folder
    #[arg(long, env = "FILES_S3_BUCKET", default_value = "", global = true)]
    pub files_s3_bucket: String,

    /// Address of the S3 service, for example http://localhost:9000; empty: the one of AWS in the region
    #[arg(long, env = "FILES_S3_ENDPOINT", default_value = "", global = true)]
    pub files_s3_endpoint: String,

    /// Region of the bucket
    #[arg(long, env = "FILES_S3_REGION", default_value = "eu-west-1", global = true)]
    pub files_s3_region: String,

    /// PEM file with authorities that the certificate of the S3 service, or of the token service, may come from besides
    /// those that the machine knows
    #[arg(long, env = "FILES_S3_CA", global = true)]
    pub files_s3_ca: Option<PathBuf>,

    /// Id of the access key to the bucket; empty: the identity below, else the role of the machine
    #[arg(long, env = "FILES_S3_KEY_ID", default_value = "", hide_env_values = true, global = true)]
    pub files_s3_key_id: String,

    /// Secret of that access key
    #[arg(long, env = "FILES_S3_SECRET", default_value = "", hide_env_values = true, global = true)]
    pub files_s3_secret: String,

    #[command(flatten)]
    pub files_s3_identity: S3Identity,
}

/// Who a pod is to AWS. The names are AWS' own: the cluster sets these variables by itself, for the roles of service
/// accounts the first two, for pod identity the last two.
#[derive(Args, Clone, Debug, Default)]
pub struct S3Identity {
    /// Role that the bucket is opened with, proven by the token below
    #[arg(long, env = "AWS_ROLE_ARN", default_value = "", global = true)]
    pub aws_role_arn: String,

    /// File with the token that proves it; read anew each time
    #[arg(long, env = "AWS_WEB_IDENTITY_TOKEN_FILE", default_value = "", global = true)]
    pub aws_web_identity_token_file: String,

    /// What the role's sessions are called in the logs of AWS
    #[arg(long, env = "AWS_ROLE_SESSION_NAME", default_value = "administration", global = true)]
    pub aws_role_session_name: String,

    /// Address of the token service, with https; empty: the one of AWS in the region
    #[arg(long, env = "AWS_ENDPOINT_URL_STS", default_value = "", global = true)]
    pub aws_endpoint_url_sts: String,

    /// Address of the agent that hands out credentials
    #[arg(long, env = "AWS_CONTAINER_CREDENTIALS_FULL_URI", default_value = "", global = true)]
    pub aws_container_credentials_full_uri: String,

    /// File with the token that the agent asks for; read anew each time
    #[arg(long, env = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", default_value = "", global = true)]
    pub aws_container_authorization_token_file: String,
}

/// What the gateway can pass on.
const LARGEST_FILE: usize = 16 << 20;

fn file_size(text: &str) -> Result<usize, String> {
    let size = text.parse().ok().filter(|size| (1..=LARGEST_FILE).contains(size));
    size.ok_or_else(|| format!("must be a number from 1 to {LARGEST_FILE}"))
}

/// A service and where to find it; with several replicas, their addresses with `|` between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAddress {
    pub name: String,
    pub url: String,
}

impl std::str::FromStr for PeerAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, url) =
            text.split_once('=').ok_or_else(|| format!("`{text}` must have the form name=url"))?;
        Ok(Self { name: name.trim().to_owned(), url: url.trim().to_owned() })
    }
}

impl Settings {
    pub fn database(&self) -> Address<'_> {
        Address { url: &self.database_url, pooler: self.database_pooler }
    }

    pub fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms)
    }

    pub fn drain(&self) -> Duration {
        Duration::from_millis(self.drain_ms)
    }

    pub fn grace(&self) -> Duration {
        Duration::from_millis(self.grace_ms)
    }

    /// The times of background work.
    pub fn timing(&self) -> Timing {
        Timing { lease: TimeDelta::milliseconds(self.lease_ms.into()), ..Timing::default() }
    }

    /// What is wrong with the settings as a whole.
    pub fn check(&self) -> Result<(), String> {
        if self.context_secret.split(',').any(|secret| secret.trim().len() < MIN_SECRET) {
            return Err(format!(
                "CONTEXT_SECRET must be set to a random text of at least {MIN_SECRET} characters, the same for every \
                 process of the mesh: openssl rand -hex 32 makes one"
            ));
        }
        Ok(())
    }
}

/// Lets every setting also come from a file: `DATABASE_URL_FILE=/run/secrets/url` stands for `DATABASE_URL`, so that a
/// secret need not be in the environment, which is shown in more places than a file is. A flag and the variable itself
/// go before the file. Blanks and line ends at the end of the file do not count.
pub fn with_files(command: Command) -> Result<Command, String> {
    with_files_of(command, |name| std::env::var_os(name))
}

fn with_files_of(command: Command, variable: impl Fn(&OsStr) -> Option<OsString>) -> Result<Command, String> {
    let mut fault = None;
    let command = command.mut_args(|arg| match from_file(&arg, &variable) {
        // Not shown by `--help`: it may be a secret.
        Ok(Some(value)) => arg.default_value(value).hide_default_value(true),
        Ok(None) => arg,
        Err(reason) => {
            fault = Some(reason);
            arg
        }
    });
    fault.map_or(Ok(command), Err)
}

fn from_file(
    arg: &Arg,
    variable: impl Fn(&OsStr) -> Option<OsString>,
) -> Result<Option<&'static str>, String> {
    let Some(name) = arg.get_env() else { return Ok(None) };
    let mut name = name.to_owned();
    name.push("_FILE");
    let Some(path) = variable(&name) else { return Ok(None) };
    let value = std::fs::read_to_string(&path)
        .map_err(|error| format!("{} ({}) cannot be read: {error}", name.display(), path.display()))?;
    // Read once and kept for as long as the process lives, as clap wants it.
    let value: &'static str = value.trim_end().to_owned().leak();
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use clap::{FromArgMatches, Parser};

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        settings: Settings,
    }

    fn command() -> Command {
        <Cli as clap::CommandFactory>::command()
    }

    fn read(file: &str, arguments: &[&str]) -> Result<String, String> {
        let file = OsString::from(file);
        let variable = |name: &OsStr| (name == "CONTEXT_SECRET_FILE").then(|| file.clone());
        let arguments = ["test"].iter().chain(arguments);
        let matches = with_files_of(command(), variable)?.get_matches_from(arguments);
        Ok(Cli::from_arg_matches(&matches).unwrap().settings.context_secret)
    }

    #[test]
    fn a_setting_is_read_from_the_file_that_its_variable_names() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "0123456789abcdef\n").unwrap();
        let file = file.to_str().unwrap();
        assert_eq!(read(file, &[]).unwrap(), "0123456789abcdef");
        assert_eq!(read(file, &["--context-secret", "by flag"]).unwrap(), "by flag");
        let variable = |name: &OsStr| (name == "CONTEXT_SECRET_FILE").then(|| OsString::from(file));
        let help = with_files_of(command(), variable).unwrap().render_long_help().to_string();
        assert!(!help.contains("0123456789abcdef"));
    }

    #[test]
    fn what_is_not_said_is_production() {
        let settings = |arguments: &[&str]| {
            let arguments = ["test"].iter().chain(arguments);
            Cli::from_arg_matches(&command().get_matches_from(arguments)).unwrap().settings
        };
        assert_eq!(settings(&[]).environment, Environment::Production);
        assert_eq!(settings(&["--environment", "development"]).environment, Environment::Development);
    }

    #[test]
    fn a_secret_is_long_enough_to_derive_keys_from() {
        let check = |secret: &str| {
            let arguments = ["test", "--context-secret", secret];
            Cli::from_arg_matches(&command().get_matches_from(arguments)).unwrap().settings.check()
        };
        let (short, long) = ("a".repeat(31), "b".repeat(32));
        assert!(check(&long).is_ok() && check(&format!("{long},{long}")).is_ok());
        for wrong in ["", &short, &format!("{long},{short}"), &format!("{short} "), &format!("{long},")] {
            assert!(check(wrong).unwrap_err().contains("32 characters"), "{wrong}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let fault = read("/nowhere/secret", &[]).unwrap_err();
        assert!(fault.starts_with("CONTEXT_SECRET_FILE (/nowhere/secret) cannot be read"), "{fault}");
    }
}
