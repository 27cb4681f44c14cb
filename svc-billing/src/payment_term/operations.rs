//! What changes of payment terms do.

use chassis_base::time::timestamp;
use chassis_data::Tx;
use chassis_data::log::snapshot::Shown;
use proto::At;
use proto::api::Fault;
use proto::billing::{PaymentTerm, PaymentTermInput};

use super::{defaults, store};
use crate::error::Error;
use crate::settings_base::SettingsLock;
use crate::settings_base::rules::{ListLimit, check_code};

const AUDIT_KIND: &str = "payment_term";
const LIMIT: ListLimit = ListLimit { max: 100, field: "term", entries: "payment terms" };

/// Adds the terms that an account starts with.
pub(crate) async fn insert_defaults(tx: &mut Tx<'_>) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let terms = defaults(&tx.settings().country, now);
    store::insert(tx.db(), account, &terms, now).await?;
    for term in terms {
        tx.changed(AUDIT_KIND, &term.code, &term);
    }
    Ok(())
}

/// Adds a term, or replaces the one with its code. One that is there already as given stays as it is.
pub(crate) async fn put(
    tx: &mut Tx<'_>,
    _lock: &SettingsLock,
    given: PaymentTermInput,
) -> Result<PaymentTerm, Error> {
    let at = At::ROOT.name("term");
    check_code(&given.code, &at.name("code"), &mut tx.faults);
    if given.days.is_none() {
        tx.faults.add(&at.name("days"), Fault::Required, "days is required");
    }
    tx.valid()?;
    let (account, now) = (tx.account(), tx.now());
    let current = store::find(tx.db(), account, &given.code).await?;
    let mut term = PaymentTerm {
        code: given.code,
        days: given.days.unwrap_or_default(),
        label: given.label,
        version: 0,
        updated_at: Some(timestamp(now)),
    };
    match current {
        Some(current) if (current.days, &current.label) == (term.days, &term.label) => return Ok(current),
        Some(current) => {
            term.version = current.version + 1;
            store::update(tx.db(), account, &term, now).await?;
        }
        None => {
            LIMIT.check(store::count(tx.db(), account).await?, &mut tx.faults);
            tx.valid()?;
            term.version = tx.first_version(AUDIT_KIND, &term.code).await?;
            store::insert(tx.db(), account, std::slice::from_ref(&term), now).await?;
        }
    }
    tx.changed(AUDIT_KIND, &term.code, &term);
    Ok(term)
}

pub(crate) async fn delete(tx: &mut Tx<'_>, _lock: &SettingsLock, code: &str) -> Result<(), Error> {
    tx.valid()?;
    let account = tx.account();
    if !store::delete(tx.db(), account, code).await? {
        return Err(Error::NotFound("payment term"));
    }
    tx.removed(AUDIT_KIND, code);
    Ok(())
}

/// Shows the terms with these codes.
pub(crate) async fn show(tx: &mut Tx<'_>, codes: &[String], shown: &mut Shown) -> Result<(), Error> {
    let account = tx.account();
    for code in codes {
        if let Some(term) = store::find(tx.db(), account, code).await? {
            shown.add(code, &term);
        }
    }
    Ok(())
}
