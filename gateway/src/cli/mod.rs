//! The command line: serve, migrate, and the management of accounts, keys and credentials. What a script wants (an id, a key, a
//! list) is alone on stdout; everything else goes to stderr.

mod account;
mod credential;
mod doctor;
mod key;
mod ledger;
mod output;
mod services;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::runtime::{MIGRATIONS, NAME};
use crate::serve;
use crate::settings::Settings;

use services::Services;

#[derive(Parser)]
#[command(name = "gateway", version, about = "The REST API, its accounts and its keys")]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten, next_help_heading = "Settings")]
    settings: Settings,
}

#[derive(Subcommand)]
enum Command {
    /// Serve until stopped (the default)
    Serve,
    /// Bring the database schema up to date and exit
    Migrate,
    /// Forget what records looked like more than AUDIT_DAYS ago and exit; needs the owner of the schema, because the role
    /// that serves may not change the log
    #[command(alias = "purge-audit")]
    CompactLog,
    /// See whether database, services, migrations, clocks, files and mail are as they should be, and what to do if not
    Doctor {
        /// Print one JSON object instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Make and list accounts
    #[command(subcommand)]
    Account(account::Command),
    /// Make, list and revoke keys
    #[command(subcommand)]
    Key(key::Command),
    /// Check the logs of an account
    #[command(subcommand)]
    Ledger(ledger::Command),
    /// Issue, list and revoke credentials of internal teams
    #[command(subcommand)]
    Credential(credential::Command),
}

/// The `main` of the gateway.
pub fn main() -> ExitCode {
    let command = match chassis_service::config::with_files(command()) {
        Ok(command) => command,
        Err(message) => return chassis_service::process::fail(NAME, &message),
    };
    let cli = match Cli::from_arg_matches(&command.get_matches()) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    let mesh = cli.settings.mesh.clone();
    chassis_service::process::run(NAME, &mesh, run(cli))
}

/// The services have the ports after the gateway's own.
fn command() -> clap::Command {
    Cli::command()
        .mut_arg("listen", |arg| arg.default_value("127.0.0.1:7700"))
        .mut_arg("metrics_listen", |arg| arg.default_value("127.0.0.1:7710"))
}

async fn run(cli: Cli) -> Result<(), String> {
    match cli.command.unwrap_or(Command::Serve) {
        Command::Serve => Box::pin(serve::serve(cli.settings)).await,
        Command::Migrate => chassis_service::process::migrate(&cli.settings.mesh, NAME, &MIGRATIONS).await,
        Command::CompactLog => chassis_service::process::compact_log(&cli.settings.mesh, NAME).await,
        Command::Doctor { json } => Box::pin(doctor::run(&cli.settings, json)).await,
        Command::Account(command) => account::run(command, &Services::new(&cli.settings)?).await,
        Command::Key(command) => key::run(command, &Services::new(&cli.settings)?).await,
        Command::Ledger(command) => ledger::run(command, &Services::new(&cli.settings)?).await,
        Command::Credential(command) => credential::run(command, &Services::new(&cli.settings)?).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn settings_have_defaults_and_may_follow_a_command() {
        let matches = command().get_matches_from(["gateway", "migrate", "--rate-per-minute", "5"]);
        let settings = Cli::from_arg_matches(&matches).unwrap().settings;
        assert_eq!((settings.rate_per_minute, settings.rate_burst), (5, 200));
        assert_eq!(settings.mesh_listen.port(), 7707);
        assert_eq!(settings.cors_origins, ["*"]);
        assert!(!settings.trust_forwarded);
    }
}
