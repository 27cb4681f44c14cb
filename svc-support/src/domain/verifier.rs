//! Checks the DNS of a domain and gives its key to the other services. A file of its own because rpcs and the worker use
//! it, and because none of it may run inside a transaction.

use std::time::Instant;

use chassis_base::Account;
use chassis_rpc::outgoing::{self, Outgoing};
use chassis_work::mail;
use chrono::{DateTime, TimeDelta, Utc};
use futures::future::try_join_all;
use proto::api::mail_key_service_client::MailKeyServiceClient;
use proto::api::{DeleteMailKeyRequest, PutMailKeyRequest};

use super::{Dns, Record, rules};
use crate::address::OwnDomain;
use crate::error::Error;

#[derive(Clone)]
pub(crate) struct Verifier {
    pub own: OwnDomain,
    pub dns: Dns,
    pub outgoing: Outgoing,
    /// The names of the other services that send mail.
    pub senders: Vec<String>,
}

impl Verifier {
    /// Compares the DNS with the expected records and applies the result to `record`. A verified domain keeps its status
    /// for `grace` without its records. An error of the DNS leaves `record` as it is.
    pub(crate) async fn check(
        &self,
        record: &mut Record,
        grace: TimeDelta,
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        let dkim = mail::key_record(&record.private_key)?;
        let expected = rules::expected_records(record, &dkim, &self.own);
        let values = try_join_all(expected.iter().map(|expected| self.dns.values(expected))).await?;
        let mut found = Vec::new();
        let mut complete = true;
        for (expected, values) in expected.iter().zip(&values) {
            if rules::is_satisfied(expected, values) {
                found.push(expected.purpose.to_owned());
            } else {
                complete &= !expected.required;
            }
        }
        record.found = found;
        rules::apply_check(record, complete, grace, now);
        Ok(())
    }

    /// Gives the key to the other services. Repeating it is harmless.
    pub(crate) async fn distribute_key(
        &self,
        account: &Account,
        deadline: Instant,
        record: &Record,
    ) -> Result<(), Error> {
        for sender in &self.senders {
            let message = PutMailKeyRequest::from(record);
            let request = self.outgoing.request(sender, account, deadline, message)?;
            MailKeyServiceClient::new(self.outgoing.channel(sender)?)
                .put_mail_key(request)
                .await
                .map_err(|status| outgoing::lookup_failed(sender, "Mail keys", &status))?;
        }
        Ok(())
    }

    /// Removes the key from the other services. Repeating it is harmless.
    pub(crate) async fn revoke_key(
        &self,
        account: &Account,
        deadline: Instant,
        host: &str,
    ) -> Result<(), Error> {
        for sender in &self.senders {
            let message = DeleteMailKeyRequest { domain: host.to_owned() };
            let request = self.outgoing.request(sender, account, deadline, message)?;
            MailKeyServiceClient::new(self.outgoing.channel(sender)?)
                .delete_mail_key(request)
                .await
                .map_err(|status| outgoing::lookup_failed(sender, "Mail keys", &status))?;
        }
        Ok(())
    }
}
