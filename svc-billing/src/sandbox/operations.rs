//! What the sandbox does, each function inside a write transaction.

use chassis_data::Tx;
use chassis_rpc::Link;
use chrono::TimeDelta;
use provider::{MandateStatus, NewPayment, Status};
use rust_decimal::Decimal;
use uuid::Uuid;

use super::rules::{self, Act};
use super::store::{self, NewCustomer};
use super::{Mandate, Payment, Sequence, external_id, parse_external_id};
use crate::error::Error;

/// The time that a payer has.
const CHECKOUT_TIMEOUT: TimeDelta = TimeDelta::hours(1);

/// The input of [`create_customer`]. The tags of these messages must not change: idempotency compares stored requests.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CreateCustomer {
    #[prost(string, tag = "1")]
    pub reference: String,
    #[prost(string, tag = "2")]
    pub name: String,
}

/// The input of [`create_payment`].
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CreatePayment {
    #[prost(string, tag = "1")]
    pub reference: String,
    #[prost(string, tag = "2")]
    pub sequence: String,
    #[prost(string, tag = "3")]
    pub customer: String,
    #[prost(string, tag = "4")]
    pub mandate: String,
    #[prost(string, tag = "5")]
    pub amount: String,
    #[prost(string, tag = "6")]
    pub currency: String,
    #[prost(string, tag = "7")]
    pub description: String,
    #[prost(string, tag = "8")]
    pub return_url: String,
    #[prost(string, tag = "9")]
    pub webhook_url: String,
}

/// The input of [`cancel`] and [`refund`].
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PaymentAmount {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(string, tag = "2")]
    pub amount: String,
}

/// The id of the record, or the reason of the refusal.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct WriteResult {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(string, tag = "2")]
    pub refusal: String,
    /// Whether the mandate is the reason.
    #[prost(bool, tag = "3")]
    pub is_mandate: bool,
}

impl WriteResult {
    fn done(id: String) -> Self {
        Self { id, ..Self::default() }
    }

    fn refused(reason: &str) -> Self {
        Self { refusal: reason.to_owned(), ..Self::default() }
    }
}

impl From<&NewPayment> for CreatePayment {
    fn from(new: &NewPayment) -> Self {
        let (sequence, customer, mandate) = match &new.sequence {
            provider::Sequence::OneOff => (Sequence::OneOff, "", ""),
            provider::Sequence::First { customer } => (Sequence::First, customer.as_str(), ""),
            provider::Sequence::Recurring { customer, mandate } => {
                (Sequence::Recurring, customer.as_str(), mandate.as_str())
            }
        };
        Self {
            reference: new.reference.clone(),
            sequence: sequence.name().to_owned(),
            customer: customer.to_owned(),
            mandate: mandate.to_owned(),
            amount: new.amount.to_string(),
            currency: new.currency.clone(),
            description: new.description.clone(),
            return_url: new.return_url.clone().unwrap_or_default(),
            webhook_url: new.webhook_url.clone(),
        }
    }
}

/// A random id. It must not be guessable, because the page of a payment is found by it.
fn secret_id(tx: &Tx<'_>) -> Uuid {
    Uuid::from_bytes(Link::random(tx.account()).secret)
}

pub(crate) async fn create_customer(tx: &mut Tx<'_>, new: &CreateCustomer) -> Result<WriteResult, Error> {
    let (account, now, id) = (tx.account(), tx.now(), secret_id(tx));
    let customer = NewCustomer { id, reference: &new.reference, name: &new.name };
    store::insert_customer(tx.db(), account, customer, now).await?;
    Ok(WriteResult::done(external_id(account, id)))
}

pub(crate) async fn create_payment(tx: &mut Tx<'_>, new: &CreatePayment) -> Result<WriteResult, Error> {
    let (account, now) = (tx.account(), tx.now());
    let Some(sequence) = Sequence::from_name(&new.sequence) else {
        return Ok(WriteResult::refused("There is no such sequence."));
    };
    let own = |text: &str| parse_external_id(text).filter(|(of, _)| *of == account).map(|(_, id)| id);
    let customer = own(&new.customer);
    if sequence != Sequence::OneOff {
        let found = match customer {
            Some(customer) => store::find_customer(tx.db(), account, customer).await?,
            None => None,
        };
        if found.is_none() {
            return Ok(WriteResult::refused("There is no such customer."));
        }
    }
    let mut mandate = None;
    if sequence == Sequence::Recurring {
        mandate = match own(&new.mandate) {
            Some(mandate) => store::find_mandate(tx.db(), account, mandate).await?,
            None => None,
        };
        if mandate.as_ref().is_none_or(|mandate| mandate.status != MandateStatus::Valid) {
            return Ok(WriteResult { is_mandate: true, ..WriteResult::refused("The mandate is not valid.") });
        }
    }
    let Some(amount) = new.amount.parse().ok().filter(|amount| *amount > Decimal::ZERO) else {
        return Ok(WriteResult::refused("The amount must be above 0."));
    };
    let collected = mandate.is_some();
    let fails = mandate.as_ref().is_some_and(|mandate| mandate.refuses_next);
    let payment = Payment {
        id: secret_id(tx),
        reference: new.reference.clone(),
        sequence,
        customer_id: customer,
        mandate_id: mandate.as_ref().map(|mandate| mandate.id),
        amount,
        currency: new.currency.clone(),
        description: new.description.clone(),
        return_url: new.return_url.clone(),
        webhook_url: new.webhook_url.clone(),
        status: if collected { Status::Pending } else { Status::Open },
        refunded: Decimal::ZERO,
        charged_back: Decimal::ZERO,
        failure: String::new(),
        paid_at: None,
        fails,
        created_at: now,
    };
    // A collection ends at the next run of the worker.
    let ends_at = if collected { now } else { now + CHECKOUT_TIMEOUT };
    store::insert(tx.db(), account, &payment, ends_at).await?;
    if let Some(mandate) = mandate.filter(|_| fails) {
        let used = Mandate { refuses_next: false, ..mandate };
        store::update_mandate(tx.db(), account, &used).await?;
    }
    Ok(WriteResult::done(external_id(account, payment.id)))
}

/// Cancels a payment that waits for its payer; any other payment stays as it is.
pub(crate) async fn cancel(tx: &mut Tx<'_>, input: &PaymentAmount) -> Result<WriteResult, Error> {
    let account = tx.account();
    if let Some((_, id)) = parse_external_id(&input.id)
        && let Some(payment) = store::lock(tx.db(), account, id).await?
        && payment.status == Status::Open
    {
        let canceled = Payment { status: Status::Canceled, ..payment };
        store::update(tx.db(), account, &canceled).await?;
    }
    Ok(WriteResult::done(input.id.clone()))
}

pub(crate) async fn refund(tx: &mut Tx<'_>, input: &PaymentAmount) -> Result<WriteResult, Error> {
    let account = tx.account();
    let amount: Decimal = input.amount.parse().unwrap_or_default();
    let found = match parse_external_id(&input.id) {
        Some((_, id)) => store::lock(tx.db(), account, id).await?,
        None => None,
    };
    let Some(payment) = found.filter(|payment| payment.status == Status::Paid) else {
        return Ok(WriteResult::refused("Only a payment that was paid can be refunded."));
    };
    if amount <= Decimal::ZERO || amount > payment.remaining() {
        return Ok(WriteResult::refused("No more can be refunded than is left of the payment."));
    }
    let refunded = Payment { refunded: payment.refunded + amount, ..payment };
    store::update(tx.db(), account, &refunded).await?;
    Ok(WriteResult::done(external_id(account, secret_id(tx))))
}

/// Applies a button of the page, if the page still has it. Returns the payment after that.
pub(crate) async fn act(tx: &mut Tx<'_>, id: Uuid, act: Act) -> Result<Option<Payment>, Error> {
    let (account, now) = (tx.account(), tx.now());
    let Some(payment) = store::lock(tx.db(), account, id).await? else { return Ok(None) };
    let mandate = match payment.mandate_id {
        Some(mandate) => store::find_mandate(tx.db(), account, mandate).await?,
        None => None,
    };
    if !rules::offered(&payment, mandate.as_ref()).contains(&act) {
        return Ok(Some(payment));
    }
    let mut after = rules::after(&payment, act, now);
    if let (Act::Authorise, Sequence::First, Some(customer)) = (act, payment.sequence, payment.customer_id) {
        let mandate = secret_id(tx);
        store::insert_mandate(tx.db(), account, mandate, customer, now).await?;
        after.mandate_id = Some(mandate);
    }
    if let Some(mandate) = mandate {
        let changed = match act {
            Act::RefuseNext => Mandate { refuses_next: true, ..mandate },
            Act::AcceptNext => Mandate { refuses_next: false, ..mandate },
            Act::Revoke => Mandate { status: MandateStatus::Invalid, ..mandate },
            _ => mandate,
        };
        store::update_mandate(tx.db(), account, &changed).await?;
    }
    store::update(tx.db(), account, &after).await?;
    Ok(Some(after))
}

/// How payments end whose time is over.
pub(crate) struct Ending {
    /// Whether the account may still use the sandbox. If not, its payments expire instead of being paid.
    pub is_allowed: bool,
}

/// Ends one payment whose time is over.
pub(crate) async fn end_due(tx: &mut Tx<'_>, ending: &Ending) -> Result<Option<Payment>, Error> {
    let (account, now) = (tx.account(), tx.now());
    let Some(payment) = store::lock_due(tx.db(), account, now).await? else { return Ok(None) };
    let act = if ending.is_allowed { rules::end(&payment) } else { Some(Act::Expire) };
    let Some(act) = act else { return Ok(None) };
    let after = rules::after(&payment, act, now);
    store::update(tx.db(), account, &after).await?;
    Ok(Some(after))
}
