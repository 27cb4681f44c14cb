//! The writes of domains: load, decide, store, record.

use chassis_data::Tx;
use chassis_data::log::snapshot::Shown;
use chassis_work::mail;
use proto::At;
use proto::api::{Fault, PutMailKeyRequest};
use proto::support::{EmailDomain, EmailDomainDetail};

use super::store::{self, MAX_DOMAINS};
use super::{NOT_FOUND, Record};
use crate::address::OwnDomain;
use crate::error::Error;

/// The kind of these records in the log.
pub(crate) const AUDIT_KIND: &str = "email_domain";
/// Why a check that leaves a domain verified, or not verified, is not in the log.
const NOTHING_NEW: &str = "a check that found nothing new is not a change";

/// Stores a new domain. A domain that the account has already keeps its key and can change whether it receives mail.
pub(super) async fn add(tx: &mut Tx<'_>, new: &Record, own: &OwnDomain) -> Result<EmailDomainDetail, Error> {
    let account = tx.account();
    if store::count(tx.db(), account).await? >= MAX_DOMAINS {
        let detail = format!("an account can have {MAX_DOMAINS} domains; remove one first");
        tx.faults.add(&At::ROOT.name("domain"), Fault::TooMany, detail);
    }
    tx.valid()?;
    let version = tx.first_version(AUDIT_KIND, &new.host).await?;
    let added = Record { version, ..new.clone() };
    if store::insert(tx.db(), account, &added).await? {
        return record_change(tx, added, own);
    }
    let mut record = store::find_locked(tx.db(), account, &new.host).await?.ok_or(NOT_FOUND)?;
    if record.receiving == new.receiving {
        tx.unaudited("it is as it was");
        return record.into_proto_detail(own);
    }
    record.receiving = new.receiving;
    record.version += 1;
    record.updated_at = tx.now();
    if new.receiving {
        // The MX record is required now and has not been checked yet.
        record.verified = false;
        record.missing_since = None;
    } else {
        store::delete_route(tx.db(), account, &record.host).await?;
    }
    store::update(tx.db(), account, &record).await?;
    record_change(tx, record, own)
}

/// Stores the result of a check. The caller has sent the key to the other services, or removed it from them, so that
/// every service can send from a domain that is shown as verified. After a failure here the next check repeats both.
pub(super) async fn apply_check(
    tx: &mut Tx<'_>,
    checked: &Record,
    own: &OwnDomain,
) -> Result<EmailDomainDetail, Error> {
    tx.valid()?;
    let account = tx.account();
    let now = tx.now();
    let mut record = store::find_locked(tx.db(), account, &checked.host).await?.ok_or(NOT_FOUND)?;
    // A change in between means that the check looked for other records than are expected now.
    if record.receiving != checked.receiving {
        return Err(chassis_base::Error::Raced.into());
    }
    let is_changed = record.verified != checked.verified;
    if is_changed {
        record.version += 1;
        record.updated_at = now;
    }
    record.verified = checked.verified;
    record.found.clone_from(&checked.found);
    record.checked_at = checked.checked_at;
    record.check_at = checked.check_at;
    record.missing_since = checked.missing_since;
    store::update(tx.db(), account, &record).await?;
    if record.verified {
        mail::put_key(tx, &PutMailKeyRequest::from(&record)).await?;
    } else {
        mail::delete_key(tx, &record.host).await?;
    }
    if record.verified && record.receiving {
        // Routes are unique over all accounts: the first account that verifies a host receives its mail.
        let owner = store::put_route(tx.db(), account, &record.host, now).await?;
        if owner != account {
            return Err(Error::DomainTaken);
        }
    } else {
        store::delete_route(tx.db(), account, &record.host).await?;
    }
    if is_changed {
        return record_change(tx, record, own);
    }
    // The key of its mail has its own entry.
    tx.unaudited(NOTHING_NEW);
    record.into_proto_detail(own)
}

/// Stores the result of a check that does not change whether the domain is verified.
pub(super) async fn record_check(tx: &mut Tx<'_>, checked: &Record) -> Result<(), Error> {
    tx.unaudited(NOTHING_NEW);
    let account = tx.account();
    store::record_check(tx.db(), account, checked).await
}

pub(super) async fn delete(tx: &mut Tx<'_>, host: &str) -> Result<(), Error> {
    tx.valid()?;
    let account = tx.account();
    store::find_locked(tx.db(), account, host).await?.ok_or(NOT_FOUND)?;
    store::delete(tx.db(), account, host).await?;
    store::delete_route(tx.db(), account, host).await?;
    mail::delete_key(tx, host).await?;
    tx.removed(AUDIT_KIND, host);
    Ok(())
}

/// Records a created or changed domain in the log as lists show it, and returns it as the answer shows it. The records of
/// the DNS follow from the domain, and what the last check found is not a change of it.
fn record_change(tx: &mut Tx<'_>, record: Record, own: &OwnDomain) -> Result<EmailDomainDetail, Error> {
    tx.changed(AUDIT_KIND, &record.host, &EmailDomain::from(record.clone()));
    record.into_proto_detail(own)
}

/// Shows the domains with these hosts.
pub(crate) async fn show(tx: &mut Tx<'_>, hosts: &[String], shown: &mut Shown) -> Result<(), Error> {
    let account = tx.account();
    for host in hosts {
        if let Some(record) = store::find(tx.db(), account, host).await? {
            shown.add(host, &EmailDomain::from(record));
        }
    }
    Ok(())
}
