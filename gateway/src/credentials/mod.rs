//! Credentials of internal teams, and the context tokens that teams get for them. One set of operations for the command
//! line and for gRPC. Independent of REST, and of what a service does with a token.

mod operations;
mod rpc;
mod rules;
mod store;

use chassis_base::AccountId;
use chassis_base::time::timestamp;
use chrono::{DateTime, Utc};
use proto::accounts::Credential;

pub use rpc::Credentials;

/// A credential as it is stored for one of its accounts.
#[derive(Clone, Debug, PartialEq, Eq, chassis_derive::FromRow)]
pub struct Record {
    pub account_id: AccountId,
    pub public_id: String,
    pub team: String,
    pub secret_hash: Vec<u8>,
    pub scopes: Vec<String>,
    pub created_at: DateTime<Utc>,
    pub expires_at: Option<DateTime<Utc>>,
    pub last_used_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
}

/// The message of a credential, from its records of all accounts; `None` when there are none. Not a `From`, because it
/// takes several records.
pub fn credential_message(records: &[Record]) -> Option<Credential> {
    let first = records.first()?;
    Some(Credential {
        public_id: first.public_id.clone(),
        team: first.team.clone(),
        account_ids: records.iter().map(|record| record.account_id.to_string()).collect(),
        scopes: first.scopes.clone(),
        created_at: Some(timestamp(first.created_at)),
        expires_at: first.expires_at.map(timestamp),
        last_used_at: records.iter().filter_map(|record| record.last_used_at).max().map(timestamp),
        revoked_at: first.revoked_at.map(timestamp),
    })
}
