//! `gateway ledger …`

use clap::Subcommand;
use tonic::Status;

use super::output::{print_columns, reason};
use super::services::Services;
use crate::ledger::{self, ChainEnd, Verified, hex};

#[derive(Subcommand)]
pub(super) enum Command {
    /// Check the log of an account in every service, and print for each where it ends: service, position and hash,
    /// separated by tabs. Fails when a chain of hashes is broken, and says where
    Verify {
        /// Id or name of the account
        #[arg(long)]
        account: String,
    },
}

pub(super) async fn run(command: Command, services: &Services) -> Result<(), String> {
    let Command::Verify { account } = command;
    let account = services.accounts.find(&account).await.map_err(|error| reason(&Status::from(error)))?;
    let mut broken = Vec::new();
    for Verified { service, outcome } in ledger::verify(&services.runtime, &account).await {
        match outcome {
            Ok(ChainEnd { position, hash }) => print_columns(&[service, position.to_string(), hex(&hash)])?,
            Err(why) => broken.push(format!("{service}: {why}")),
        }
    }
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n")) }
}
