//! Starting a checkout on the page of an invoice: at most one is open, for exactly the open amount.

use std::sync::Arc;

use chassis_data::Tx;
use proto::billing::PayOnPageRequest;
use rust_decimal::Decimal;

use super::{abandon, request_payment};
use crate::document::operations::Family;
use crate::document::rules::printed_state;
use crate::document::{Kind, Links};
use crate::error::Error;
use crate::online_payment::operations::request_cancellation;
use crate::online_payment::{OnlinePayment, Purpose, Status, TAKEOVER_DELAY, store};

/// What a checkout needs besides the request.
#[derive(Clone)]
pub(crate) struct StartCheckout {
    pub invoice: String,
    pub provider: &'static str,
    /// The URL that the payer returns to.
    pub page: Arc<str>,
    pub links: Links,
}

/// What is to be done after the commit. Without a payment and a cancellation the payer goes back to the page.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CheckoutStep {
    /// The payment whose checkout the payer is sent to.
    #[prost(string, tag = "1")]
    pub payment: String,
    /// The payment to cancel first.
    #[prost(string, tag = "2")]
    pub cancel: String,
    /// Whether the payment was requested by an earlier call.
    #[prost(bool, tag = "3")]
    pub again: bool,
}

/// Requests a payment of the open amount of an invoice, or continues with the one that is open.
pub(crate) async fn start_checkout(
    tx: &mut Tx<'_>,
    _: &PayOnPageRequest,
    start: &StartCheckout,
) -> Result<CheckoutStep, Error> {
    // The lock on the invoice makes payers who press the button at the same time wait for each other.
    let family = Family::lock(tx, &start.links, Kind::Invoice, &start.invoice).await?;
    let mut family = family.ok_or_else(chassis_rpc::link::unknown_link)?;
    let (account, now, zone) = (tx.account(), tx.now(), tx.settings().timezone);
    let Some(open) = printed_state::amount_to_pay(family.target(), zone) else {
        return Ok(CheckoutStep::default());
    };
    let invoice = family.target().id;
    let latest = store::find_latest(tx.db(), account, invoice).await?;
    match latest.filter(|payment| payment.status.is_open()) {
        Some(current) if current.provider == start.provider => {
            return continue_checkout(tx, &current, open).await;
        }
        Some(current) => abandon(tx, &mut family, current).await?,
        None => {}
    }
    let payment = OnlinePayment {
        document_id: Some(invoice),
        client_id: family.target().client.as_ref().map(|client| client.id),
        amount: open,
        currency: family.target().currency.clone(),
        description: family.target().number.clone(),
        return_url: start.page.to_string(),
        ..OnlinePayment::new(tx.id(), Purpose::Checkout, start.provider, account, now)
    };
    request_payment(tx, Some(&mut family), &payment, TAKEOVER_DELAY).await?;
    Ok(CheckoutStep { payment: payment.id.to_string(), cancel: String::new(), again: false })
}

/// Continues with an open payment: its checkout is used again if it is for the open amount, otherwise it is canceled
/// first. A payment that the payer has already made, or that is a collection, is left alone.
async fn continue_checkout(
    tx: &mut Tx<'_>,
    current: &OnlinePayment,
    open: Decimal,
) -> Result<CheckoutStep, Error> {
    let id = current.id.to_string();
    if current.purpose != Purpose::Checkout || !matches!(current.status, Status::Requested | Status::Open) {
        return Ok(CheckoutStep::default());
    }
    if current.amount == open && !current.closing {
        return Ok(CheckoutStep { payment: id, cancel: String::new(), again: true });
    }
    request_cancellation(tx, current.id, TAKEOVER_DELAY).await?;
    Ok(CheckoutStep { payment: String::new(), cancel: id, again: true })
}
