//! API keys: their format, what is stored of them, what changes them, the caller that a key stands for, and
//! authentication. Independent of HTTP and of the operations. `rpc.rs` serves the keys of the caller's own account; those of
//! any account belong to `AccountService`, which `accounts/rpc.rs` serves.

mod authenticator;
mod automation;
mod caller;
mod format;
mod lookup_batch;
pub(crate) mod operations;
pub(crate) mod rpc;
pub(crate) mod rules;
pub(crate) mod store;
mod token_cache;
pub(crate) mod worker;

use chassis_base::time::timestamp;
use chassis_base::{Account, AccountId, Error, stored};
use chrono::{DateTime, Utc};
use proto::accounts;
use proto::gateway::ApiKey;
use uuid::Uuid;

pub use authenticator::{AuthError, Authenticator};
pub use caller::Caller;
pub use format::{NewKey, PresentedKey, public_id_of};
pub use token_cache::{TokenCache, TokenHolder};

/// A key as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, chassis_derive::FromRow)]
pub struct Record {
    pub id: Uuid,
    pub account_id: AccountId,
    pub public_id: String,
    pub name: String,
    pub scopes: Vec<String>,
    /// Whether requests with a name that their operation does not know are refused.
    pub strict: bool,
    pub created_at: DateTime<Utc>,
    /// When it was narrowed or revoked; the time of creation when neither happened.
    pub updated_at: DateTime<Utc>,
    pub expires_at: Option<DateTime<Utc>>,
    pub last_used_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
}

/// A key with what authentication needs of its secret and of its account.
#[derive(Clone, Debug, PartialEq, Eq, chassis_derive::FromRow)]
pub struct KeyWithAccount {
    #[sqlx(flatten)]
    pub key: Record,
    pub secret_hash: Vec<u8>,
    pub country: String,
    pub timezone: String,
    pub currency: String,
}

impl KeyWithAccount {
    pub fn account(&self) -> Result<Account, Error> {
        Ok(Account {
            id: self.key.account_id,
            timezone: stored::decode("account.timezone", &self.timezone, |name| name.parse().ok())?,
            country: self.country.clone(),
            currency: self.currency.clone(),
        })
    }
}

impl From<Record> for accounts::Key {
    fn from(record: Record) -> Self {
        Self {
            public_id: record.public_id,
            account_id: record.account_id.to_string(),
            name: record.name,
            scopes: record.scopes,
            strict: record.strict,
            created_at: Some(timestamp(record.created_at)),
            expires_at: record.expires_at.map(timestamp),
            last_used_at: record.last_used_at.map(timestamp),
            revoked_at: record.revoked_at.map(timestamp),
        }
    }
}

impl From<Record> for ApiKey {
    fn from(record: Record) -> Self {
        Self {
            id: record.id.to_string(),
            public_id: record.public_id,
            name: record.name,
            scopes: record.scopes,
            strict: record.strict,
            created_at: Some(timestamp(record.created_at)),
            updated_at: Some(timestamp(record.updated_at)),
            expires_at: record.expires_at.map(timestamp),
            last_used_at: record.last_used_at.map(timestamp),
            revoked_at: record.revoked_at.map(timestamp),
        }
    }
}
