//! The rpcs of `SettingsService` about payment terms.

use chassis_base::AccountId;
use chassis_data::{Db, Tx};
use proto::At;
use proto::api::Fault;
use proto::billing::{
    DeletePaymentTermRequest, DeletePaymentTermResponse, PaymentTerm, PutPaymentTermRequest,
    PutPaymentTermResponse,
};

use super::store;
use crate::settings::rules::{check_code, check_room};
use crate::{Error, provision};

/// What the audit log calls it.
pub const AUDITED: &str = "payment_term";
/// Most payment terms of an account.
const MOST: i64 = 100;

pub async fn list(db: &Db, account: AccountId) -> Result<Vec<PaymentTerm>, Error> {
    let terms = db.read(async |connection| store::list(connection, account).await).await?;
    Ok(terms)
}

pub async fn put(tx: &mut Tx<'_>, input: &PutPaymentTermRequest) -> Result<PutPaymentTermResponse, Error> {
    let given = input.term.clone().unwrap_or_default();
    let at = At::ROOT.name("term");
    check_code(&given.code, &at.name("code"), &mut tx.faults);
    if given.days.is_none() {
        tx.faults.add(&at.name("days"), Fault::Required, "days is required");
    }
    tx.valid()?;
    let term = PaymentTerm { code: given.code, days: given.days.unwrap_or_default(), label: given.label };
    provision::lock(tx).await?;
    let (account, now) = (tx.account(), tx.now());
    let others = store::put(tx.db(), account, &term, now).await?;
    check_room(others, MOST, "term", "payment terms", &mut tx.faults);
    tx.valid()?;
    tx.changed(AUDITED, &term.code, &term);
    Ok(PutPaymentTermResponse { data: Some(term) })
}

pub async fn delete(
    tx: &mut Tx<'_>,
    input: &DeletePaymentTermRequest,
) -> Result<DeletePaymentTermResponse, Error> {
    tx.valid()?;
    provision::lock(tx).await?;
    let account = tx.account();
    if !store::delete(tx.db(), account, &input.code).await? {
        return Err(Error::NotFound("payment term"));
    }
    tx.removed(AUDITED, &input.code);
    Ok(DeletePaymentTermResponse {})
}
