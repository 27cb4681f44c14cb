//! What changes of tax rates do.

use chassis_data::Tx;
use proto::billing::{TaxRate, TaxRateContext, TaxRateInput};

use super::{Rate, countries, rules, store};
use crate::error::Error;
use crate::settings_base::SettingsLock;
use crate::settings_base::rules::ListLimit;

const AUDIT_KIND: &str = "tax_rate";
const LIMIT: ListLimit = ListLimit { max: 200, field: "tax_rate", entries: "tax rates" };

/// Adds the rates that an account of its country starts with.
pub(crate) async fn insert_defaults(tx: &mut Tx<'_>) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let rates = countries::rates_of(&tx.settings().country);
    store::insert(tx.db(), account, &rates, now).await?;
    for rate in rates {
        audit(tx, rate);
    }
    Ok(())
}

/// Adds a rate, or replaces the one with its context and code.
pub(crate) async fn put(tx: &mut Tx<'_>, _lock: &SettingsLock, given: &TaxRateInput) -> Result<Rate, Error> {
    let rate = rules::rate_of(given, &mut tx.faults);
    tx.valid()?;
    let (account, now) = (tx.account(), tx.now());
    let others = store::put(tx.db(), account, &rate, now).await?;
    LIMIT.check(others, &mut tx.faults);
    tx.valid()?;
    audit(tx, rate.clone());
    Ok(rate)
}

pub(crate) async fn delete(
    tx: &mut Tx<'_>,
    lock: &SettingsLock,
    context: TaxRateContext,
    code: &str,
) -> Result<(), Error> {
    tx.valid()?;
    if context == TaxRateContext::Sales && code == lock.default_tax_code {
        return Err(Error::InUse("tax rate"));
    }
    let account = tx.account();
    if !store::delete(tx.db(), account, context, code).await? {
        return Err(Error::NotFound("tax rate"));
    }
    tx.removed(AUDIT_KIND, audit_id(context, code));
    Ok(())
}

/// Records a tax rate in the log.
fn audit(tx: &mut Tx<'_>, rate: Rate) {
    let id = audit_id(rate.context, &rate.code);
    tx.changed(AUDIT_KIND, id, &TaxRate::from(rate));
}

/// The id of a rate in the log. It includes the context, because sales and purchases have the same codes.
fn audit_id(context: TaxRateContext, code: &str) -> String {
    let context = context.as_str_name().trim_start_matches("TAX_RATE_CONTEXT_").to_ascii_lowercase();
    format!("{context}/{code}")
}
