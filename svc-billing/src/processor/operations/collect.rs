//! Collecting an invoice by mandate.

use chassis_data::Tx;
use chrono::TimeDelta;
use rust_decimal::Decimal;
use uuid::Uuid;

use super::{abandon, request_payment};
use crate::document::Kind;
use crate::document::operations::Family;
use crate::error::Error;
use crate::mandate::{self, MandateState};
use crate::online_payment::{OnlinePayment, Purpose, store};

/// Requests the collection of the open amount of an invoice by the mandate of its client, and returns the id of the
/// payment. `None` when the client has no valid mandate, nothing is open, or a payment is under way. May be called in
/// the transaction that creates the invoice, so that an invoice never exists without its collection.
pub(crate) async fn collect(tx: &mut Tx<'_>, provider: &str, invoice: Uuid) -> Result<Option<Uuid>, Error> {
    let Some(mut family) = Family::lock(tx, Kind::Invoice, &invoice.to_string()).await? else {
        return Ok(None);
    };
    let (account, now) = (tx.account(), tx.now());
    let open = family.settlement().map(|settlement| settlement.open).unwrap_or_default();
    let record = family.target();
    let Some(client) = record.client.as_ref().map(|client| client.id) else { return Ok(None) };
    if !record.is_final || open <= Decimal::ZERO {
        return Ok(None);
    }
    let currency = record.currency.clone();
    let number = record.number.clone();
    let debtor = mandate::store::find(tx.db(), account, client, provider).await?;
    let Some(debtor) = debtor.filter(|debtor| debtor.mandate == MandateState::Valid) else {
        return Ok(None);
    };
    let latest = store::find_latest(tx.db(), account, invoice).await?;
    match latest.filter(|payment| payment.status.is_open()) {
        Some(open) if open.provider == provider => return Ok(None),
        Some(open) => abandon(tx, &mut family, open).await?,
        None => {}
    }
    let payment = OnlinePayment {
        client_id: Some(client),
        document_id: Some(invoice),
        amount: open,
        currency,
        description: number,
        customer_id: debtor.customer_id,
        mandate_id: debtor.mandate_id,
        ..OnlinePayment::new(tx.id(), Purpose::Collection, provider, account, now)
    };
    request_payment(tx, Some(&mut family), &payment, TimeDelta::zero()).await?;
    Ok(Some(payment.id))
}
