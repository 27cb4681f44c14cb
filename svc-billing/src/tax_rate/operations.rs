//! What changes of tax rates do.

use chassis_data::Tx;
use chassis_data::log::snapshot::Shown;
use proto::billing::{TaxRate, TaxRateContext, TaxRateInput};

use super::{Record, countries, rules, store};
use crate::error::Error;
use crate::settings_base::SettingsLock;
use crate::settings_base::rules::ListLimit;

const AUDIT_KIND: &str = "tax_rate";
const LIMIT: ListLimit = ListLimit { max: 200, field: "tax_rate", entries: "tax rates" };

/// Adds the rates that an account of its country starts with.
pub(crate) async fn insert_defaults(tx: &mut Tx<'_>) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let new = |rate| Record { rate, version: 1, updated_at: now };
    let records: Vec<Record> = countries::rates_of(&tx.settings().country).into_iter().map(new).collect();
    store::insert(tx.db(), account, &records).await?;
    for record in records {
        audit(tx, record);
    }
    Ok(())
}

/// Adds a rate, or replaces the one with its context and code. One that is there already as given stays as it is.
pub(crate) async fn put(
    tx: &mut Tx<'_>,
    _lock: &SettingsLock,
    given: &TaxRateInput,
) -> Result<Record, Error> {
    let rate = rules::rate_of(given, &mut tx.faults);
    tx.valid()?;
    let (account, now) = (tx.account(), tx.now());
    let record = match store::find(tx.db(), account, rate.context, &rate.code).await? {
        Some(current) if current.rate == rate => return Ok(current),
        Some(current) => {
            let record = Record { rate, version: current.version + 1, updated_at: now };
            store::update(tx.db(), account, &record).await?;
            record
        }
        None => {
            LIMIT.check(store::count(tx.db(), account).await?, &mut tx.faults);
            tx.valid()?;
            let id = audit_id(rate.context, &rate.code);
            let version = tx.first_version(AUDIT_KIND, &id).await?;
            let record = Record { rate, version, updated_at: now };
            store::insert(tx.db(), account, std::slice::from_ref(&record)).await?;
            record
        }
    };
    audit(tx, record.clone());
    Ok(record)
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
fn audit(tx: &mut Tx<'_>, record: Record) {
    let id = audit_id(record.rate.context, &record.rate.code);
    tx.changed(AUDIT_KIND, id, &TaxRate::from(record));
}

/// The id of a rate in the log. It includes the context, because sales and purchases have the same codes.
fn audit_id(context: TaxRateContext, code: &str) -> String {
    let context = context.as_str_name().trim_start_matches("TAX_RATE_CONTEXT_").to_ascii_lowercase();
    format!("{context}/{code}")
}

/// Shows the rates with these ids.
pub(crate) async fn show(tx: &mut Tx<'_>, ids: &[String], shown: &mut Shown) -> Result<(), Error> {
    let account = tx.account();
    for record in store::list(tx.db(), account, None).await? {
        let id = audit_id(record.rate.context, &record.rate.code);
        if ids.contains(&id) {
            shown.add(id, &TaxRate::from(record));
        }
    }
    Ok(())
}
