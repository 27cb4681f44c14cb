//! What the sandbox does, each inside a write transaction.

use chassis_data::Tx;
use chassis_rpc::Link;
use chrono::TimeDelta;
use provider::{MandateStatus, NewPayment, Sequence, Status};
use rust_decimal::Decimal;
use uuid::Uuid;

use super::rules::{self, Act};
use super::store::{self, Mandate, Payment};
use super::{external, internal};
use crate::Error;

/// For how long a payment waits for its payer.
const OPEN_FOR: TimeDelta = TimeDelta::hours(1);

/// A customer to be made.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Name {
    #[prost(string, tag = "1")]
    pub reference: String,
    #[prost(string, tag = "2")]
    pub name: String,
}

/// A payment to be made.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Wanted {
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

/// A payment that is there, and an amount of it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Named {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(string, tag = "2")]
    pub amount: String,
}

/// The id of what was made, or why nothing was.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Made {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(string, tag = "2")]
    pub refusal: String,
    /// Whether it is the mandate that stood in the way.
    #[prost(bool, tag = "3")]
    pub is_mandate: bool,
}

impl Made {
    fn done(id: String) -> Self {
        Self { id, ..Self::default() }
    }

    fn refused(reason: &str) -> Self {
        Self { refusal: reason.to_owned(), ..Self::default() }
    }
}

impl From<&NewPayment> for Wanted {
    fn from(new: &NewPayment) -> Self {
        let (sequence, customer, mandate) = match &new.sequence {
            Sequence::OneOff => ("one_off", "", ""),
            Sequence::First { customer } => ("first", customer.as_str(), ""),
            Sequence::Recurring { customer, mandate } => ("recurring", customer.as_str(), mandate.as_str()),
        };
        Self {
            reference: new.reference.clone(),
            sequence: sequence.to_owned(),
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

/// Unguessable: the page of a payment is found by it.
fn secret(tx: &Tx<'_>) -> Uuid {
    Uuid::from_bytes(Link::random(tx.account()).secret)
}

pub async fn create_customer(tx: &mut Tx<'_>, new: &Name) -> Result<Made, Error> {
    let (account, now, id) = (tx.account(), tx.now(), secret(tx));
    store::insert_customer(tx.db(), account, (id, &new.reference, &new.name), now).await?;
    Ok(Made::done(external(account, id)))
}

pub async fn create_payment(tx: &mut Tx<'_>, new: &Wanted) -> Result<Made, Error> {
    let (account, now) = (tx.account(), tx.now());
    let own = |text: &str| internal(text).filter(|(of, _)| *of == account).map(|(_, id)| id);
    let customer = own(&new.customer);
    if new.sequence != "one_off" {
        let known = match customer {
            Some(customer) => store::find_customer(tx.db(), account, customer).await?,
            None => None,
        };
        if known.is_none() {
            return Ok(Made::refused("There is no such customer."));
        }
    }
    let mut mandate = None;
    if new.sequence == "recurring" {
        mandate = match own(&new.mandate) {
            Some(mandate) => store::find_mandate(tx.db(), account, mandate).await?,
            None => None,
        };
        if mandate.as_ref().is_none_or(|mandate| mandate.status != MandateStatus::Valid) {
            return Ok(Made { is_mandate: true, ..Made::refused("The mandate is not valid.") });
        }
    }
    let Some(amount) = new.amount.parse().ok().filter(|amount| *amount > Decimal::ZERO) else {
        return Ok(Made::refused("The amount must be above 0."));
    };
    let collected = mandate.is_some();
    let fails = mandate.as_ref().is_some_and(|mandate| mandate.refuses_next);
    let payment = Payment {
        id: secret(tx),
        reference: new.reference.clone(),
        sequence: new.sequence.clone(),
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
    // A collection ends at the next look of the worker.
    let ends_at = if collected { now } else { now + OPEN_FOR };
    store::insert(tx.db(), account, &payment, ends_at).await?;
    if let Some(mandate) = mandate.filter(|_| fails) {
        let used = Mandate { refuses_next: false, ..mandate };
        store::update_mandate(tx.db(), account, &used).await?;
    }
    Ok(Made::done(external(account, payment.id)))
}

/// Only what waits for its payer can be canceled; anything else stays as it is.
pub async fn cancel(tx: &mut Tx<'_>, named: &Named) -> Result<Made, Error> {
    let account = tx.account();
    if let Some((_, id)) = internal(&named.id)
        && let Some(payment) = store::lock(tx.db(), account, id).await?
        && payment.status == Status::Open
    {
        let canceled = Payment { status: Status::Canceled, ..payment };
        store::update(tx.db(), account, &canceled).await?;
    }
    Ok(Made::done(named.id.clone()))
}

pub async fn refund(tx: &mut Tx<'_>, named: &Named) -> Result<Made, Error> {
    let account = tx.account();
    let amount: Decimal = named.amount.parse().unwrap_or_default();
    let found = match internal(&named.id) {
        Some((_, id)) => store::lock(tx.db(), account, id).await?,
        None => None,
    };
    let Some(payment) = found.filter(|payment| payment.status == Status::Paid) else {
        return Ok(Made::refused("Only a payment that was paid can be refunded."));
    };
    if amount <= Decimal::ZERO || amount > payment.left() {
        return Ok(Made::refused("No more can be refunded than is left of the payment."));
    }
    let refunded = Payment { refunded: payment.refunded + amount, ..payment };
    store::update(tx.db(), account, &refunded).await?;
    Ok(Made::done(external(account, secret(tx))))
}

/// Does as a button says, if the page still has it. Returns the payment as it is then.
pub async fn act(tx: &mut Tx<'_>, id: Uuid, act: Act) -> Result<Option<Payment>, Error> {
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
    if let (Act::Authorise, "first", Some(customer)) = (act, payment.sequence.as_str(), payment.customer_id) {
        let new = secret(tx);
        store::insert_mandate(tx.db(), account, (new, customer), now).await?;
        after.mandate_id = Some(new);
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
pub struct Ending {
    /// Nothing is paid in the sandbox of an account that does not want it any more.
    pub is_wanted: bool,
}

/// Ends one payment whose time is over.
pub async fn end_one(tx: &mut Tx<'_>, ending: &Ending) -> Result<Option<Payment>, Error> {
    let (account, now) = (tx.account(), tx.now());
    let Some(payment) = store::lock_due(tx.db(), account, now).await? else { return Ok(None) };
    let act = if ending.is_wanted { rules::end(&payment) } else { Some(Act::Expire) };
    let Some(act) = act else { return Ok(None) };
    let after = rules::after(&payment, act, now);
    store::update(tx.db(), account, &after).await?;
    Ok(Some(after))
}
