//! Paying an invoice on its page: one open checkout at most, for exactly what is open.

use std::sync::Arc;

use chassis_data::Tx;
use chassis_rpc::{Call, Context};
use proto::Faults;
use proto::billing::PayOnPageRequest;
use rust_decimal::Decimal;
use tonic::Status as Refusal;

use super::note::{abandon, begin};
use super::perform::{Till, away};
use super::wish::{self, GRACE};
use super::{OnlinePayment, Purpose, Status, store};
use crate::Error;
use crate::document::operations::Family;
use crate::document::{Kind, Record};
use crate::page::State;

/// How often a checkout for another amount is canceled before the payer is sent back to the page.
const ROUNDS: usize = 3;

/// What a press needs besides the request.
#[derive(Clone)]
struct Wanted {
    invoice: String,
    provider: &'static str,
    /// Where the payer comes back to.
    page: Arc<str>,
}

/// What a press left to be done; nothing of it: the page tells.
#[derive(Clone, PartialEq, prost::Message)]
struct Pressed {
    /// The payment to lead to.
    #[prost(string, tag = "1")]
    payment: String,
    /// The payment to cancel first.
    #[prost(string, tag = "2")]
    cancel: String,
    /// Whether it was begun by an earlier press.
    #[prost(bool, tag = "3")]
    again: bool,
}

/// Where the press of the button leads; `None` is back to the page.
pub async fn pay(
    till: &Till,
    context: &Context,
    input: &PayOnPageRequest,
    (invoice, page): (&Record, String),
) -> Result<Option<String>, Refusal> {
    let provider = till.begins_with(context.account_id()).await?;
    let wanted = Wanted { invoice: invoice.id.to_string(), provider, page: page.into() };
    for _ in 0..ROUNDS {
        let call = Call { context: context.clone(), input: input.clone(), faults: Faults::default() };
        let pressed = till.db.write_with(call, wanted.clone(), press).await?.into_inner();
        if let Some(id) = chassis_base::id::parse(&pressed.cancel) {
            till.at_once(context, wish::Kind::Cancel, id).await?;
            continue;
        }
        let Some(id) = chassis_base::id::parse(&pressed.payment) else { return Ok(None) };
        till.at_once(context, wish::Kind::Payment, id).await?;
        if pressed.again {
            // It may have been paid, and nobody told us. When that cannot be asked, its checkout tells.
            till.ask_in_vain(context, id).await;
        }
        let payment =
            till.db.read(async |connection| store::find(connection, context.account_id(), id).await).await?;
        return match payment {
            Some(payment) if payment.status == Status::Wanted => Err(away().into()),
            Some(payment) if !payment.checkout_url.is_empty() => Ok(Some(till.local(&payment.checkout_url))),
            _ => Ok(None),
        };
    }
    Ok(None)
}

async fn press(tx: &mut Tx<'_>, (_, wanted): &(PayOnPageRequest, Wanted)) -> Result<Pressed, Error> {
    let family = Family::lock(tx, Kind::Invoice, &wanted.invoice).await?;
    let mut family = family.ok_or_else(chassis_rpc::link::unknown_link)?;
    let (account, now, today, zone) = (tx.account(), tx.now(), tx.today(), tx.settings().timezone);
    let State::ToPay { open, .. } = State::of(family.target(), today, zone) else {
        return Ok(Pressed::default());
    };
    let invoice = family.target().id;
    let latest = store::find_latest(tx.db(), account, invoice).await?;
    match latest.filter(|payment| payment.status.is_open()) {
        Some(begun) if begun.provider == wanted.provider => return go_on(tx, begun, open).await,
        Some(begun) => abandon(tx, &mut family, begun).await?,
        None => {}
    }
    let payment = OnlinePayment {
        document_id: Some(invoice),
        client_id: family.target().client.as_ref().map(|client| client.id),
        amount: open,
        currency: family.target().currency.clone(),
        description: family.target().number.clone(),
        return_url: wanted.page.to_string(),
        ..OnlinePayment::wanted(tx.id(), Purpose::Checkout, wanted.provider, account, now)
    };
    begin(tx, Some(&mut family), &payment, GRACE).await?;
    Ok(Pressed { payment: payment.id.to_string(), cancel: String::new(), again: false })
}

/// With what was begun before: to the same checkout when it is for what is open now, else it is canceled first. What is
/// under way already is left alone.
async fn go_on(tx: &mut Tx<'_>, begun: OnlinePayment, open: Decimal) -> Result<Pressed, Error> {
    let (account, now) = (tx.account(), tx.now());
    let id = begun.id.to_string();
    if begun.purpose != Purpose::Checkout || !matches!(begun.status, Status::Wanted | Status::Open) {
        return Ok(Pressed::default());
    }
    if begun.amount == open && !begun.closing {
        return Ok(Pressed { payment: id, cancel: String::new(), again: true });
    }
    let Some(locked) = store::lock(tx.db(), account, begun.id).await? else { return Ok(Pressed::default()) };
    if locked.status.is_open() {
        let closing = OnlinePayment { closing: true, ..locked };
        store::update(tx.db(), account, &closing, now).await?;
        wish::add(tx, (wish::Kind::Cancel, begun.id), &begun.provider, Decimal::ZERO, GRACE).await?;
    }
    Ok(Pressed { payment: String::new(), cancel: id, again: true })
}
