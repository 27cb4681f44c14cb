//! `gateway account …`

use chassis_service::table;
use clap::Subcommand;
use proto::accounts::account_service_server::AccountService;
use proto::accounts::{CreateAccountRequest, ListAccountsRequest};
use tonic::Status;

use super::output::{print, reason};
use super::services::Services;
use crate::accounts::Unprovisioned;

#[derive(Subcommand)]
pub(super) enum Command {
    /// Make an account, provision it in every service, and print its id
    Create {
        /// What the account is called; no other account may have the name
        #[arg(long)]
        name: String,
        /// ISO 3166 code of two letters
        #[arg(long, default_value = "NL")]
        country: String,
        /// IANA name
        #[arg(long, default_value = "Europe/Amsterdam")]
        timezone: String,
        /// ISO 4217 code of three letters
        #[arg(long, default_value = "EUR")]
        currency: String,
    },
    /// Print every account: id, name, country, time zone and currency, separated by tabs
    List,
    /// Provision an account in every service again; no effect in services that have it
    Provision {
        /// Id or name
        account: String,
    },
}

pub(super) async fn run(command: Command, services: &Services) -> Result<(), String> {
    match command {
        Command::Create { name, country, timezone, currency } => {
            create(services, CreateAccountRequest { name, country, timezone, currency }).await
        }
        Command::List => list(services).await,
        Command::Provision { account } => {
            let failed = services.accounts.provision(&account).await;
            provisioned(&account, &failed.map_err(|error| reason(&Status::from(error)))?)
        }
    }
}

async fn create(services: &Services, message: CreateAccountRequest) -> Result<(), String> {
    let request = services.request("admin.accounts.v1.AccountService/CreateAccount", message);
    let created = services.accounts.create(request).await.map_err(|status| reason(&status))?;
    let account = created.response.into_inner().account.unwrap_or_default();
    print(&account.id)?;
    provisioned(&account.id, &created.unprovisioned)
}

async fn list(services: &Services) -> Result<(), String> {
    let request = services.request("admin.accounts.v1.AccountService/ListAccounts", ListAccountsRequest {});
    let response = services.accounts.list_accounts(request).await.map_err(|status| reason(&status))?;
    let accounts = response.into_inner().accounts.into_iter();
    table::print(
        ["id", "name", "country", "time zone", "currency"],
        accounts.map(|one| [one.id, one.name, one.country, one.timezone, one.currency]),
    )
}

/// The account exists either way, but the command fails when a service could not be provisioned.
fn provisioned(account: &str, failed: &[Unprovisioned]) -> Result<(), String> {
    if failed.is_empty() {
        return Ok(());
    }
    let each: Vec<String> =
        failed.iter().map(|failed| format!("  {}: {}", failed.peer, failed.reason)).collect();
    Err(format!(
        "the account exists, but it could not be provisioned in these services:\n{}\nwhen they are up, run: gateway account \
         provision {account}",
        each.join("\n")
    ))
}
