//! Accounts: one set of operations for the command line and for internal teams over gRPC. The services appear only as
//! peers that every account is provisioned in. The contract's `AccountService` has the rpcs of keys too, so `rpc.rs`
//! serves them from `keys`; nothing in `keys` uses this folder.

pub(crate) mod operations;
pub mod provision;
mod rpc;
mod rules;
pub(crate) mod store;

use chassis_base::time::timestamp;
use chassis_base::{Account, AccountId, Error, stored};
use chrono::{DateTime, Utc};
use proto::accounts;

pub use provision::Unprovisioned;
pub use rpc::{Accounts, Created};

/// An account as it is stored.
#[derive(Clone, Debug, chassis_derive::FromRow)]
pub struct Record {
    pub account_id: AccountId,
    pub name: String,
    pub country: String,
    pub timezone: String,
    pub currency: String,
    pub created_at: DateTime<Utc>,
}

impl Record {
    /// The account in the form of services and context tokens.
    pub fn account(&self) -> Result<Account, Error> {
        Ok(Account {
            id: self.account_id,
            timezone: stored::decode("account.timezone", &self.timezone, |name| name.parse().ok())?,
            country: self.country.clone(),
            currency: self.currency.clone(),
        })
    }
}

impl From<Record> for accounts::Account {
    fn from(record: Record) -> Self {
        Self {
            id: record.account_id.to_string(),
            name: record.name,
            country: record.country,
            timezone: record.timezone,
            currency: record.currency,
            created_at: Some(timestamp(record.created_at)),
        }
    }
}
