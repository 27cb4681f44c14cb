//! `gateway key …`

use chassis_base::Timezone;
use chassis_service::table;
use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeZone, Utc};
use clap::{ArgGroup, Subcommand};
use proto::accounts::account_service_server::AccountService;
use proto::accounts::{CreateKeyRequest, Key, ListKeysRequest, NarrowKeyRequest, RevokeKeyRequest};
use tonic::Status;

use super::output::{print, reason, time};
use super::services::Services;

#[derive(Subcommand)]
pub(super) enum Command {
    /// Make a key and print it; it cannot be shown again
    #[command(group = ArgGroup::new("rights").required(true).args(["scopes", "all_scopes"]))]
    Create {
        /// Id or name of the account
        #[arg(long)]
        account: String,
        /// What the key is for
        #[arg(long)]
        name: String,
        /// What it may do, comma-separated, for example relations.read,relations.write
        #[arg(long, value_delimiter = ',')]
        scopes: Vec<String>,
        /// It may do everything
        #[arg(long)]
        all_scopes: bool,
        /// Last day on which it works, in the account's time zone; or the moment it ends, as 2027-01-31T12:00:00Z
        #[arg(long)]
        expires: Option<String>,
        /// Refuse its requests when they have a field or parameter that the operation does not know
        #[arg(long)]
        strict: bool,
    },
    /// Print the keys of an account, without secrets: public id, name, scopes, created, expires, last used, revoked, strict
    List {
        /// Id or name of the account
        #[arg(long)]
        account: String,
    },
    /// Remove scopes from a key, within 5 seconds everywhere, its webhook endpoints included
    Narrow {
        /// The whole key or its public id
        key: String,
        /// Those of its scopes that it keeps, comma-separated
        #[arg(long, value_delimiter = ',', required = true)]
        scopes: Vec<String>,
    },
    /// Assign a webhook endpoint to a key: from then on it receives what that key may read
    Assign {
        /// The whole key or its public id
        key: String,
        /// Id of the endpoint
        #[arg(long)]
        endpoint: String,
    },
    /// End a key, within 5 seconds everywhere
    Revoke {
        /// The whole key or its public id
        key: String,
    },
}

pub(super) async fn run(command: Command, services: &Services) -> Result<(), String> {
    match command {
        Command::Create { account, name, scopes, all_scopes, expires, strict } => {
            let expires_at = match expires {
                Some(text) => Some(chassis_base::time::timestamp(expiry(services, &account, &text).await?)),
                None => None,
            };
            let scopes = scopes.iter().map(|scope| scope.trim().to_owned()).collect();
            let request = CreateKeyRequest { account, name, scopes, all_scopes, expires_at, strict };
            create(services, request).await
        }
        Command::List { account } => list(services, account).await,
        Command::Narrow { key, scopes } => narrow(services, key, scopes).await,
        Command::Assign { key, endpoint } => {
            let assigned = services.accounts.assign_endpoint(&key, &endpoint).await;
            assigned.map_err(|error| reason(&Status::from(error)))
        }
        Command::Revoke { key } => revoke(services, key).await,
    }
}

async fn create(services: &Services, message: CreateKeyRequest) -> Result<(), String> {
    let request = services.request("admin.accounts.v1.AccountService/CreateKey", message);
    let response = services.accounts.create_key(request).await.map_err(|status| reason(&status))?;
    print(&response.into_inner().secret)
}

async fn list(services: &Services, account: String) -> Result<(), String> {
    let request = services.request("admin.accounts.v1.AccountService/ListKeys", ListKeysRequest { account });
    let response = services.accounts.list_keys(request).await.map_err(|status| reason(&status))?;
    let headers = ["public id", "name", "scopes", "created", "expires", "last used", "revoked", "strict"];
    table::print(headers, response.into_inner().keys.into_iter().map(columns))
}

fn columns(key: Key) -> [String; 8] {
    let times = [key.created_at, key.expires_at, key.last_used_at, key.revoked_at].map(time);
    let [created, expires, last_used, revoked] = times;
    let strict = if key.strict { "strict" } else { "-" }.to_owned();
    [key.public_id, key.name, key.scopes.join(","), created, expires, last_used, revoked, strict]
}

async fn narrow(services: &Services, key: String, scopes: Vec<String>) -> Result<(), String> {
    let scopes = scopes.iter().map(|scope| scope.trim().to_owned()).collect();
    let request =
        services.request("admin.accounts.v1.AccountService/NarrowKey", NarrowKeyRequest { key, scopes });
    let response = services.accounts.narrow_key(request).await.map_err(|status| reason(&status))?;
    let key = response.into_inner().key.unwrap_or_default();
    tracing::info!(public_id = key.public_id, name = key.name, scopes = key.scopes.join(","), "narrowed");
    Ok(())
}

async fn revoke(services: &Services, key: String) -> Result<(), String> {
    let request = services.request("admin.accounts.v1.AccountService/RevokeKey", RevokeKeyRequest { key });
    let response = services.accounts.revoke_key(request).await.map_err(|status| reason(&status))?;
    let key = response.into_inner().key.unwrap_or_default();
    tracing::info!(public_id = key.public_id, name = key.name, "revoked");
    Ok(())
}

pub(super) async fn expiry(services: &Services, account: &str, text: &str) -> Result<DateTime<Utc>, String> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Ok(time.to_utc());
    }
    let account = services.accounts.get(account).await.and_then(|record| record.account());
    let zone = account.map_err(|error| reason(&Status::from(error)))?.timezone;
    let date = text.parse().ok().and_then(|date| end_of_day(date, zone));
    date.ok_or_else(|| {
        format!("--expires {text}: must be a date (2027-01-31) or a time (2027-01-31T12:00:00Z)")
    })
}

/// The first moment after the day.
fn end_of_day(day: NaiveDate, zone: Timezone) -> Option<DateTime<Utc>> {
    let midnight = day.checked_add_days(Days::new(1))?.and_time(NaiveTime::MIN);
    // Where clocks are put forward at midnight, the next day begins an hour later.
    let starts = (0..=2).map(|hours| midnight + chrono::TimeDelta::hours(hours));
    starts.filter_map(|start| zone.from_local_datetime(&start).earliest()).map(|start| start.to_utc()).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_works_until_the_day_ends_in_the_accounts_zone() {
        let day = NaiveDate::from_ymd_opt(2027, 6, 30).unwrap();
        assert_eq!(end_of_day(day, Timezone::AMSTERDAM).unwrap().to_rfc3339(), "2027-06-30T22:00:00+00:00");
        assert_eq!(end_of_day(day, Timezone::UTC).unwrap().to_rfc3339(), "2027-07-01T00:00:00+00:00");
        assert!(end_of_day(NaiveDate::MAX, Timezone::UTC).is_none());
    }
}
