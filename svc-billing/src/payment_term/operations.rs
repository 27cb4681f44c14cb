//! What changes of payment terms do.

use chassis_data::Tx;
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
    let terms = defaults(&tx.settings().country);
    store::insert(tx.db(), account, &terms, now).await?;
    for term in terms {
        tx.changed(AUDIT_KIND, &term.code, &term);
    }
    Ok(())
}

/// Adds a term, or replaces the one with its code.
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
    let term = PaymentTerm { code: given.code, days: given.days.unwrap_or_default(), label: given.label };
    let (account, now) = (tx.account(), tx.now());
    let others = store::put(tx.db(), account, &term, now).await?;
    LIMIT.check(others, &mut tx.faults);
    tx.valid()?;
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
