//! The rpcs of `SettingsService` about tax rates.

use chassis_base::AccountId;
use chassis_data::{Db, Tx};
use proto::billing::{
    DeleteTaxRateRequest, DeleteTaxRateResponse, PutTaxRateRequest, PutTaxRateResponse, TaxRate,
    TaxRateContext,
};

use super::{rules, store};
use crate::settings::rules::check_room;
use crate::{Error, provision};

/// What the audit log calls it.
const AUDITED: &str = "tax_rate";
/// Most tax rates of an account.
const MOST: i64 = 200;

pub async fn list(db: &Db, account: AccountId, context: TaxRateContext) -> Result<Vec<TaxRate>, Error> {
    let context = Some(context).filter(|context| *context != TaxRateContext::Unspecified);
    let mut rates = db.read(async |connection| store::list(connection, account, context).await).await?;
    rules::sort(&mut rates);
    Ok(rates.into_iter().map(TaxRate::from).collect())
}

pub async fn put(tx: &mut Tx<'_>, input: &PutTaxRateRequest) -> Result<PutTaxRateResponse, Error> {
    let given = input.tax_rate.clone().unwrap_or_default();
    let rate = rules::rate_of(&given, &mut tx.faults);
    tx.valid()?;
    provision::lock(tx).await?;
    let (account, now) = (tx.account(), tx.now());
    let others = store::put(tx.db(), account, &rate, now).await?;
    check_room(others, MOST, "tax_rate", "tax rates", &mut tx.faults);
    tx.valid()?;
    let rate = TaxRate::from(rate);
    audit(tx, &rate);
    Ok(PutTaxRateResponse { data: Some(rate) })
}

pub async fn delete(tx: &mut Tx<'_>, input: &DeleteTaxRateRequest) -> Result<DeleteTaxRateResponse, Error> {
    tx.valid()?;
    let settings = provision::lock(tx).await?;
    if input.context() == TaxRateContext::Sales && input.code == settings.default_tax_code {
        return Err(Error::InUse("tax rate"));
    }
    let account = tx.account();
    if !store::delete(tx.db(), account, input.context(), &input.code).await? {
        return Err(Error::NotFound("tax rate"));
    }
    tx.removed(AUDITED, audit_id(input.context(), &input.code));
    Ok(DeleteTaxRateResponse {})
}

/// Keeps a tax rate in the audit log as it is now.
pub fn audit(tx: &mut Tx<'_>, rate: &TaxRate) {
    tx.changed(AUDITED, audit_id(rate.context(), &rate.code), rate);
}

/// What names a rate in the audit log: sales and purchases have the same codes.
fn audit_id(context: TaxRateContext, code: &str) -> String {
    let context = context.as_str_name().trim_start_matches("TAX_RATE_CONTEXT_").to_ascii_lowercase();
    format!("{context}/{code}")
}
