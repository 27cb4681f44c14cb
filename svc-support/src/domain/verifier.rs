//! A look at the DNS of a domain, and what follows from it: who gets its key, and whether its mail comes in.

use std::time::Instant;

use chassis::outgoing::{self, Outgoing};
use chassis::{Account, Tx, mail};
use chrono::{DateTime, TimeDelta, Utc};
use futures::future::try_join_all;
use proto::api::mail_key_service_client::MailKeyServiceClient;
use proto::api::{DeleteMailKeyRequest, PutMailKeyRequest};

use super::{Dns, Record, UNKNOWN, rules, store};
use crate::Error;
use crate::address::OwnDomain;

#[derive(Clone)]
pub struct Inspector {
    pub own: OwnDomain,
    pub dns: Dns,
    pub outgoing: Outgoing,
    /// The other services that send mail.
    pub senders: Vec<String>,
}

impl Inspector {
    /// Looks which of the wanted records the DNS has. A domain that was verified stays so for `grace` without them.
    pub async fn look(&self, record: &mut Record, grace: TimeDelta, now: DateTime<Utc>) -> Result<(), Error> {
        let wanted = rules::records(record, &mail::key_record(&record.private_key)?, &self.own);
        let (mut found, mut complete) = (Vec::new(), true);
        let values = try_join_all(wanted.iter().map(|wanted| self.dns.values(wanted))).await?;
        for (wanted, values) in wanted.iter().zip(&values) {
            if rules::is_met(wanted, values) {
                found.push(wanted.purpose.to_owned());
            } else {
                complete &= !wanted.required;
            }
        }
        record.found = found;
        rules::judge(record, complete, grace, now);
        Ok(())
    }

    pub async fn give_key(&self, account: &Account, deadline: Instant, record: &Record) -> Result<(), Error> {
        for sender in &self.senders {
            let request = self.outgoing.request(sender, account, deadline, put_request(record))?;
            MailKeyServiceClient::new(self.outgoing.channel(sender)?)
                .put_mail_key(request)
                .await
                .map_err(|status| outgoing::away(sender, "Mail keys", &status))?;
        }
        Ok(())
    }

    pub async fn take_key(&self, account: &Account, deadline: Instant, host: &str) -> Result<(), Error> {
        for sender in &self.senders {
            let asked = DeleteMailKeyRequest { domain: host.to_owned() };
            let request = self.outgoing.request(sender, account, deadline, asked)?;
            MailKeyServiceClient::new(self.outgoing.channel(sender)?)
                .delete_mail_key(request)
                .await
                .map_err(|status| outgoing::away(sender, "Mail keys", &status))?;
        }
        Ok(())
    }
}

fn put_request(record: &Record) -> PutMailKeyRequest {
    PutMailKeyRequest {
        domain: record.host.clone(),
        selector: record.selector.clone(),
        private_key: record.private_key.clone(),
    }
}

/// Stores what a look found. The other services have been told: a domain that says it is verified can be sent from
/// everywhere.
pub async fn settle(tx: &mut Tx<'_>, seen: &Record) -> Result<Record, Error> {
    let (account, now) = (tx.account(), tx.now());
    let mut record = store::find_locked(tx.db(), account, &seen.host).await?.ok_or(UNKNOWN)?;
    // What the DNS was asked for must still be what is wanted.
    if record.receiving != seen.receiving {
        return Err(chassis::Error::Raced.into());
    }
    if record.verified != seen.verified {
        record.updated_at = now;
    }
    record.verified = seen.verified;
    record.found.clone_from(&seen.found);
    record.checked_at = seen.checked_at;
    record.check_at = seen.check_at;
    record.missing_since = seen.missing_since;
    store::update(tx.db(), account, &record).await?;
    if record.verified {
        mail::put_key(tx, &put_request(&record)).await?;
    } else {
        mail::delete_key(tx, &record.host).await?;
    }
    if record.verified && record.receiving {
        let owner = store::put_route(tx.db(), account, &record.host, now).await?;
        if owner != account {
            return Err(Error::DomainTaken);
        }
    } else {
        store::delete_route(tx.db(), account, &record.host).await?;
    }
    Ok(record)
}
