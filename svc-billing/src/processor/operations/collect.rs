//! Collecting an invoice by mandate.

use chassis_data::Tx;
use chrono::TimeDelta;
use rust_decimal::Decimal;
use uuid::Uuid;

use super::{abandon, request_payment};
use crate::document::operations::Family;
use crate::document::{Kind, Links};
use crate::error::Error;
use crate::mandate::{self, MandateState};
use crate::online_payment::{OnlinePayment, Purpose, store};

/// Requests the collection of the open amount of an invoice by the mandate of its client, and returns the id of the
/// payment. `None` when the client has no valid mandate, nothing is open, or a payment is under way.
pub(crate) async fn collect(
    tx: &mut Tx<'_>,
    links: &Links,
    provider: &str,
    invoice: Uuid,
) -> Result<Option<Uuid>, Error> {
    match Family::lock(tx, links, Kind::Invoice, &invoice.to_string()).await? {
        Some(mut family) => collect_family(tx, provider, &mut family).await,
        None => Ok(None),
    }
}

/// The same for an invoice that is locked. May be called in the transaction that creates it, so that an invoice never
/// exists without its collection.
pub(crate) async fn collect_family(
    tx: &mut Tx<'_>,
    provider: &str,
    family: &mut Family,
) -> Result<Option<Uuid>, Error> {
    let invoice = family.target().id;
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
        Some(open) => abandon(tx, family, open).await?,
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
    request_payment(tx, Some(family), &payment, TimeDelta::zero()).await?;
    Ok(Some(payment.id))
}
