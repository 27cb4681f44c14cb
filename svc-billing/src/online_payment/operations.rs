//! Requests for cancellation, each inside a write transaction. The provider is called after the commit.

use chassis_data::Tx;
use chrono::TimeDelta;
use rust_decimal::Decimal;
use uuid::Uuid;

use super::store::{self, commands};
use super::{CommandKind, NewCommand, OnlinePayment};
use crate::error::Error;

/// Requests the cancellation of a payment, which the worker sends to the provider after `delay`. Returns whether the
/// payment was open: a payment that has ended meanwhile is left alone.
pub(crate) async fn request_cancellation(
    tx: &mut Tx<'_>,
    payment: Uuid,
    delay: TimeDelta,
) -> Result<bool, Error> {
    let (account, now) = (tx.account(), tx.now());
    // Read under its lock, because the provider's answer may store it as paid at the same time.
    let locked = store::lock(tx.db(), account, payment).await?;
    let Some(open) = locked.filter(|payment| payment.status.is_open()) else { return Ok(false) };
    let closing = OnlinePayment { closing: true, ..open };
    store::update(tx.db(), account, &closing, now).await?;
    enqueue_cancel(tx, payment, &closing.provider, delay).await?;
    Ok(true)
}

/// Requests the cancellation of the open payment of an invoice, if it is for another amount than is open now. To be
/// called whenever the open amount of an invoice changes: a payer must not pay an amount that is no longer due.
pub(crate) async fn cancel_superseded(tx: &mut Tx<'_>, invoice: Uuid, open: Decimal) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    match store::close_superseded(tx.db(), account, invoice, open, now).await? {
        Some(closed) => enqueue_cancel(tx, closed.id, &closed.provider, TimeDelta::zero()).await,
        None => Ok(()),
    }
}

async fn enqueue_cancel(
    tx: &mut Tx<'_>,
    payment: Uuid,
    provider: &str,
    delay: TimeDelta,
) -> Result<(), Error> {
    let kind = CommandKind::CancelPayment;
    let cancel = NewCommand { kind, subject: payment, provider, amount: Decimal::ZERO, delay };
    commands::enqueue(tx, &cancel).await
}
