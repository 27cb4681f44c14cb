//! `gateway credential …`

use chassis_service::table;
use clap::{ArgGroup, Subcommand};
use proto::accounts::credential_service_server::CredentialService;
use proto::accounts::{Credential, IssueCredentialRequest, ListCredentialsRequest, RevokeCredentialRequest};

use super::key::expiry;
use super::output::{print, reason, time};
use super::services::Services;

#[derive(Subcommand)]
pub(super) enum Command {
    /// Make a credential of an internal team and print it; it cannot be shown again
    #[command(group = ArgGroup::new("rights").required(true).args(["scopes", "all_scopes"]))]
    Issue {
        /// Whose it is
        #[arg(long)]
        team: String,
        /// Ids or names of the accounts that it may act for, comma-separated
        #[arg(long = "account", required = true, value_delimiter = ',')]
        accounts: Vec<String>,
        /// What it may do, comma-separated, for example relations.read,crm.internal
        #[arg(long, value_delimiter = ',')]
        scopes: Vec<String>,
        /// It may do everything
        #[arg(long)]
        all_scopes: bool,
        /// Last day on which it works, in the first account's time zone; or the moment it ends, as 2027-01-31T12:00:00Z
        #[arg(long)]
        expires: Option<String>,
    },
    /// Print all credentials, without secrets: public id, team, accounts, scopes, created, expires, last used, revoked
    List,
    /// End a credential: no token is made with it any more, and the last one ends within a minute
    Revoke {
        /// The whole credential or its public id
        credential: String,
    },
}

pub(super) async fn run(command: Command, services: &Services) -> Result<(), String> {
    match command {
        Command::Issue { team, accounts, scopes, all_scopes, expires } => {
            let first = accounts.first().map(|account| account.trim()).unwrap_or_default();
            let expires_at = match expires {
                Some(text) => Some(chassis_base::time::timestamp(expiry(services, first, &text).await?)),
                None => None,
            };
            let (accounts, scopes) = (trimmed(&accounts), trimmed(&scopes));
            issue(services, IssueCredentialRequest { team, accounts, scopes, all_scopes, expires_at }).await
        }
        Command::List => list(services).await,
        Command::Revoke { credential } => revoke(services, credential).await,
    }
}

fn trimmed(list: &[String]) -> Vec<String> {
    list.iter().map(|entry| entry.trim().to_owned()).collect()
}

async fn issue(services: &Services, message: IssueCredentialRequest) -> Result<(), String> {
    let request = services.request("admin.accounts.v1.CredentialService/IssueCredential", message);
    let response = services.credentials.issue_credential(request).await.map_err(|status| reason(&status))?;
    print(&response.into_inner().secret)
}

async fn list(services: &Services) -> Result<(), String> {
    let request =
        services.request("admin.accounts.v1.CredentialService/ListCredentials", ListCredentialsRequest {});
    let response = services.credentials.list_credentials(request).await.map_err(|status| reason(&status))?;
    let headers = ["public id", "team", "accounts", "scopes", "created", "expires", "last used", "revoked"];
    table::print(headers, response.into_inner().credentials.into_iter().map(columns))
}

fn columns(credential: Credential) -> [String; 8] {
    let times =
        [credential.created_at, credential.expires_at, credential.last_used_at, credential.revoked_at];
    let [created, expires, last_used, revoked] = times.map(time);
    let (accounts, scopes) = (credential.account_ids.join(","), credential.scopes.join(","));
    [credential.public_id, credential.team, accounts, scopes, created, expires, last_used, revoked]
}

async fn revoke(services: &Services, credential: String) -> Result<(), String> {
    let message = RevokeCredentialRequest { credential };
    let request = services.request("admin.accounts.v1.CredentialService/RevokeCredential", message);
    let response = services.credentials.revoke_credential(request).await.map_err(|status| reason(&status))?;
    let credential = response.into_inner().credential.unwrap_or_default();
    tracing::info!(public_id = credential.public_id, team = credential.team, "revoked");
    Ok(())
}
