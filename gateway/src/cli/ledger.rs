//! `gateway ledger …`

use chassis_service::table;
use clap::Subcommand;
use tonic::Status;

use super::output::reason;
use super::services::Services;
use crate::ledger::{self, ChainEnd, Compared, Verified, hex};

#[derive(Subcommand)]
pub(super) enum Command {
    /// Check the log of an account in every service, and print for each where it ends: service, position and hash.
    /// Fails when a chain of hashes is broken, and says where
    Verify {
        /// Id or name of the account
        #[arg(long)]
        account: String,
    },
    /// Compare the log of every service with its records, log what it lacks, and print how many entries that were: account,
    /// service and number, separated by tabs. Services do this themselves after an upgrade; this is for not waiting, and
    /// after rows were changed by hand
    Snapshot {
        /// Id or name of one account; all accounts without it
        #[arg(long)]
        account: Option<String>,
    },
}

pub(super) async fn run(command: Command, services: &Services) -> Result<(), String> {
    match command {
        Command::Verify { account } => verify(&account, services).await,
        Command::Snapshot { account } => snapshot(account.as_deref(), services).await,
    }
}

async fn verify(account: &str, services: &Services) -> Result<(), String> {
    let account = services.accounts.find(account).await.map_err(|error| reason(&Status::from(error)))?;
    let (mut whole, mut broken) = (Vec::new(), Vec::new());
    for Verified { service, outcome } in ledger::verify(&services.runtime, &account).await {
        match outcome {
            Ok(ChainEnd { position, hash }) => whole.push([service, position.to_string(), hex(&hash)]),
            Err(why) => broken.push(format!("{service}: {why}")),
        }
    }
    table::print(["service", "position", "hash"], whole)?;
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n")) }
}

async fn snapshot(account: Option<&str>, services: &Services) -> Result<(), String> {
    let told = |error| reason(&Status::from(error));
    let records = match account {
        Some(account) => vec![services.accounts.get(account).await.map_err(told)?],
        None => services.accounts.list().await.map_err(told)?,
    };
    let mut failed = Vec::new();
    for record in records {
        let account = record.account().map_err(told)?;
        for Compared { service, outcome } in ledger::snapshot(&services.runtime, &account).await {
            match outcome {
                Ok(logged) => table::print_row([record.name.clone(), service, logged.to_string()])?,
                Err(why) => failed.push(format!("{}, {service}: {why}", record.name)),
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}
