//! Configuration: every setting is a flag and an environment variable, and `--help` shows both with the default. The
//! variable with the suffix `_FILE` names a file that contains the value.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::time::Duration;

use chassis_base::Environment;
use chassis_data::{DatabaseSettings, Listener};
use chassis_rpc::peer::PeerAddress;
use chassis_rpc::tls::TlsSettings;
use chassis_work::files::FileSettings;
use chassis_work::mail::MailSettings;
use chassis_work::worker::WorkerSettings;
use clap::{Arg, Args, Command};

use crate::connections::ConnectionSettings;
use crate::stage::StopSettings;
use crate::telemetry::TelemetrySettings;

/// The minimum length of a secret, in characters, because keys are derived from it.
const MIN_SECRET: usize = 32;

/// The settings of every process of the mesh.
#[derive(Args, Clone, Debug)]
pub struct Settings {
    /// Address to listen on
    #[arg(long, env = "LISTEN", default_value = "127.0.0.1:7701", global = true)]
    pub listen: SocketAddr,

    /// Address for /metrics, /healthz and /readyz; for operators only
    #[arg(long, env = "METRICS_LISTEN", default_value = "127.0.0.1:7711", global = true)]
    pub metrics_listen: SocketAddr,

    #[command(flatten)]
    pub database: DatabaseSettings,

    /// Secret that signs context tokens, the same for the whole mesh; several, comma-separated, to rotate: the first signs, all verify
    #[arg(long, env = "CONTEXT_SECRET", default_value = "", hide_env_values = true, global = true)]
    pub context_secret: String,

    /// Where this runs; in development the gRPC services can be explored by reflection, and mail can go to files
    #[arg(long, env = "ENVIRONMENT", default_value = "production", global = true)]
    pub environment: Environment,

    #[command(flatten)]
    pub telemetry: TelemetrySettings,

    /// Maximum number of calls in progress; above it a call is refused immediately
    #[arg(long, env = "MAX_IN_FLIGHT", default_value_t = 512, global = true)]
    pub max_in_flight: usize,

    /// Time limit of a call that has no deadline of its own, in milliseconds
    #[arg(long, env = "DEADLINE_MS", default_value_t = 10_000, global = true)]
    pub deadline_ms: u64,

    #[command(flatten)]
    pub stop: StopSettings,

    #[command(flatten)]
    pub workers: WorkerSettings,

    /// Days for which the log keeps every state of a record; then `compact-log` forgets all but the latest. 0: forever
    #[arg(long, env = "AUDIT_DAYS", default_value_t = 400, global = true)]
    pub audit_days: u16,

    #[command(flatten)]
    pub connections: ConnectionSettings,

    #[command(flatten)]
    pub tls: TlsSettings,
}

/// The settings of services only: listeners of their events, peers, mail and files.
#[derive(Args, Clone, Debug)]
pub struct ServiceSettings {
    /// Services that receive the events of this service: name=url, comma-separated; name=url;type;type for some types
    /// only; name=url|url for a service with replicas
    #[arg(long, env = "LISTENERS", value_delimiter = ',', global = true)]
    pub listeners: Vec<Listener>,

    /// Other services: name=url, comma-separated; name=url|url for a service with replicas
    #[arg(long, env = "PEERS", value_delimiter = ',', global = true)]
    pub peers: Vec<PeerAddress>,

    /// Public address of the gateway; links to pages and files begin with it
    #[arg(long, env = "PUBLIC_URL", default_value = "http://127.0.0.1:7700", global = true)]
    pub public_url: String,

    #[command(flatten)]
    pub mail: MailSettings,

    #[command(flatten)]
    pub files: FileSettings,
}

impl Settings {
    pub fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms)
    }

    /// Checks the settings that clap cannot check.
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

/// Lets every setting come from a file too: `DATABASE_URL_FILE=/run/secrets/url` replaces `DATABASE_URL`, so that a
/// secret need not be in the environment, which is visible in more places than a file. A flag and the variable itself
/// take precedence over the file. Whitespace at the end of the file is ignored.
pub fn with_files(command: Command) -> Result<Command, String> {
    with_files_of(command, |name| std::env::var_os(name))
}

fn with_files_of(command: Command, variable: impl Fn(&OsStr) -> Option<OsString>) -> Result<Command, String> {
    let mut fault = None;
    let command = command.mut_args(|arg| match from_file(&arg, &variable) {
        // The value may be a secret, so `--help` does not show it.
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
    // Clap requires a static default. The value is read once per process, so the leak is bounded.
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
