//! Email domains: the names that the business sends mail from, the keys that sign it, and the DNS records that they need.

mod dns;
mod key;
mod message;
pub(crate) mod operations;
pub(crate) mod rpc;
mod rules;
pub(crate) mod store;
mod verifier;
mod worker;

pub(crate) use dns::Dns;
pub(crate) use verifier::Verifier;
pub(crate) use worker::worker;

use chassis_base::time::timestamp;
use chrono::{DateTime, Utc};
use proto::api::PutMailKeyRequest;
use proto::support::{EmailDomain, EmailDomainStatus, EmailDomainType};

use crate::error::Error;

const NOT_FOUND: Error = Error::NotFound("email domain");

/// A domain as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, chassis_derive::FromRow)]
pub struct Record {
    pub version: i64,
    /// Subdomain and domain: the part of an address after the `@`.
    pub host: String,
    pub domain: String,
    pub subdomain: String,
    /// Whether mail to the domain comes in here too.
    pub receiving: bool,
    pub verified: bool,
    pub selector: String,
    pub private_key: String,
    /// The purposes of the records that the last check found.
    pub found: Vec<String>,
    pub checked_at: Option<DateTime<Utc>>,
    /// When the next check is due.
    pub check_at: DateTime<Utc>,
    /// Since when a verified domain lacks a required record.
    pub missing_since: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl From<Record> for EmailDomain {
    fn from(record: Record) -> Self {
        let status = if record.verified { EmailDomainStatus::Verified } else { EmailDomainStatus::Pending };
        let kind = if record.receiving { EmailDomainType::Full } else { EmailDomainType::Sending };
        Self {
            domain: record.domain,
            subdomain: record.subdomain,
            status: status.into(),
            r#type: kind.into(),
            created_at: Some(timestamp(record.created_at)),
            updated_at: Some(timestamp(record.updated_at)),
            version: record.version,
        }
    }
}

impl From<&Record> for PutMailKeyRequest {
    fn from(record: &Record) -> Self {
        Self {
            domain: record.host.clone(),
            selector: record.selector.clone(),
            private_key: record.private_key.clone(),
        }
    }
}
