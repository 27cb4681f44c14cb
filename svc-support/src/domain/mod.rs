//! Email domains: the names that the business sends mail from, the keys that sign it, and what its DNS should say.

mod dns;
mod inspect;
mod key;
mod recheck;
pub mod rpc;
mod rules;
pub mod store;

pub use dns::Dns;
pub use inspect::Inspector;
pub use recheck::worker;

use chassis::Tx;
use chassis::time::timestamp;
use chrono::{DateTime, Utc};
use proto::support::{DnsRecord, EmailDomain, EmailDomainDetail, EmailDomainStatus, EmailDomainType};

use crate::Error;
use crate::address::OwnDomain;

const UNKNOWN: Error = Error::NotFound("email domain");
/// What the audit log calls it.
const AUDITED: &str = "email_domain";

/// A domain as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Record {
    /// What addresses end with: subdomain and domain.
    pub host: String,
    pub domain: String,
    pub subdomain: String,
    /// Whether its mail comes in here too.
    pub receiving: bool,
    pub verified: bool,
    pub selector: String,
    pub private_key: String,
    /// The purposes of the records that the last look found.
    pub found: Vec<String>,
    pub checked_at: Option<DateTime<Utc>>,
    /// When it is looked at next.
    pub check_at: DateTime<Utc>,
    /// Since when a verified one lacks what it needs.
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
        }
    }
}

/// A domain with the records that its DNS should have.
fn detail(record: Record, own: &OwnDomain) -> Result<EmailDomainDetail, Error> {
    let records = rules::records(&record, &chassis::mail::key_record(&record.private_key)?, own);
    let records = records.into_iter().map(|wanted| DnsRecord {
        r#type: wanted.kind.to_owned(),
        found: record.found.iter().any(|purpose| purpose == wanted.purpose),
        name: wanted.name,
        value: wanted.value,
        purpose: wanted.purpose.to_owned(),
        required: wanted.required,
    });
    Ok(EmailDomainDetail {
        records: records.collect(),
        checked_at: record.checked_at.map(timestamp),
        domain: Some(record.into()),
    })
}

/// A domain that was made or changed, as it is answered and as the audit log keeps it.
fn audited(tx: &mut Tx<'_>, record: Record, own: &OwnDomain) -> Result<EmailDomainDetail, Error> {
    let host = record.host.clone();
    let shown = detail(record, own)?;
    tx.changed(AUDITED, host, &shown);
    Ok(shown)
}
