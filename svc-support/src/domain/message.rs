//! The message of one domain. A file of its own, because it needs the rules, which need the record.

use chassis_base::time::timestamp;
use proto::support::{DnsRecord, EmailDomainDetail};

use super::{Record, rules};
use crate::address::OwnDomain;
use crate::error::Error;

impl Record {
    /// The message for callers, with the records that the DNS should have. Fails when the stored key cannot be read.
    pub(super) fn into_proto_detail(self, own: &OwnDomain) -> Result<EmailDomainDetail, Error> {
        let dkim = chassis_work::mail::key_record(&self.private_key)?;
        let expected = rules::expected_records(&self, &dkim, own);
        let records = expected.into_iter().map(|expected| DnsRecord {
            r#type: expected.kind.to_owned(),
            found: self.found.iter().any(|purpose| purpose == expected.purpose),
            name: expected.name,
            value: expected.value,
            purpose: expected.purpose.to_owned(),
            required: expected.required,
        });
        Ok(EmailDomainDetail {
            records: records.collect(),
            checked_at: self.checked_at.map(timestamp),
            domain: Some(self.into()),
        })
    }
}
