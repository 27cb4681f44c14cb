//! What billing asks of a payment provider, and nothing more.
//!
//! Every call that makes something carries a [`Key`]: a provider that has seen it answers as it did then. A call whose
//! answer never came ([`Fault::Unknown`]) is repeated with its key or resolved by looking the thing up by our own
//! `reference`, which the provider keeps with it.

pub mod mollie;
#[cfg(feature = "testing")]
pub mod testing;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;

/// Names one wish; the same wish, repeated, has the same key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(pub String);

/// A client as the provider should know it.
#[derive(Clone, Debug)]
pub struct NewCustomer {
    /// Our own id of the client.
    pub reference: String,
    pub name: String,
    pub email: Option<String>,
}

/// In which part of a direct debit a payment is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sequence {
    /// Paid once, by whoever opens the checkout page.
    OneOff,
    /// Paid by the client once, which gives a mandate.
    First { customer: String },
    /// Collected by mandate, without the client doing anything.
    Recurring { customer: String, mandate: String },
}

#[derive(Clone, Debug)]
pub struct NewPayment {
    /// Our own id of the payment.
    pub reference: String,
    pub sequence: Sequence,
    pub amount: Decimal,
    /// ISO 4217.
    pub currency: String,
    pub description: String,
    /// Where the payer is sent after the checkout; none for a collection.
    pub return_url: Option<String>,
    /// Where the provider tells us that something changed.
    pub webhook_url: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Open,
    Pending,
    Authorized,
    Paid,
    Canceled,
    Expired,
    Failed,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Payment {
    /// The provider's id.
    pub id: String,
    pub reference: String,
    pub status: Status,
    pub amount: Decimal,
    /// What went back to the payer, by us or by the payer's bank. The status stays `Paid`.
    pub refunded: Decimal,
    pub charged_back: Decimal,
    pub customer: Option<String>,
    pub mandate: Option<String>,
    /// Where the payer pays, while it can be paid.
    pub checkout_url: Option<String>,
    pub paid_at: Option<DateTime<Utc>>,
    /// Why it failed, in the provider's words.
    pub failure: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MandateStatus {
    Pending,
    Valid,
    Invalid,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mandate {
    pub id: String,
    pub status: MandateStatus,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Refund {
    pub id: String,
    pub amount: Decimal,
}

/// Why a provider did not do as asked.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Fault {
    /// It said no, and will say no again.
    #[error("the payment provider refused: {detail}")]
    Refused { detail: String, field: Option<String> },
    /// It does not collect with this mandate: it was withdrawn, or never became valid. Says no again, too.
    #[error("the payment provider refused the mandate: {detail}")]
    MandateInvalid { detail: String },
    /// Nothing was done: too busy, or not reached at all. Try again, not before the given number of seconds.
    #[error("the payment provider cannot be reached now: {detail}")]
    Unavailable { detail: String, retry_after: Option<u64> },
    /// The answer never came or made no sense: it may have been done. Ask.
    #[error("the payment provider did not answer clearly: {detail}")]
    Unknown { detail: String },
    /// The webhook is not the provider's.
    #[error("the webhook's signature is not valid")]
    Forged,
}

/// A message of the provider, as it came over HTTP.
#[derive(Clone, Debug)]
pub struct Webhook<'a> {
    pub signature: Option<&'a str>,
    pub body: &'a [u8],
}

#[tonic::async_trait]
pub trait Provider: Send + Sync {
    /// `sandbox` or `mollie`, as the public answers name it.
    fn name(&self) -> &'static str;

    /// The provider's id of the new customer.
    async fn create_customer(&self, key: &Key, customer: &NewCustomer) -> Result<String, Fault>;

    async fn create_payment(&self, key: &Key, payment: &NewPayment) -> Result<Payment, Fault>;

    async fn payment(&self, id: &str) -> Result<Option<Payment>, Fault>;

    /// The payment made with our reference, when the answer of its creation never came.
    async fn find_payment(&self, reference: &str, since: DateTime<Utc>) -> Result<Option<Payment>, Fault>;

    /// Cancels a payment that is still open; one that is not is returned as it is.
    async fn cancel_payment(&self, key: &Key, id: &str) -> Result<Option<Payment>, Fault>;

    /// The mandates of a customer, newest first. One that was withdrawn may be missing, and nobody is told of that.
    async fn mandates(&self, customer: &str) -> Result<Vec<Mandate>, Fault>;

    async fn refund(&self, key: &Key, payment: &str, amount: Decimal) -> Result<Refund, Fault>;

    /// The id of the payment that a signed message is about, which is then fetched; nothing else in it is believed.
    /// What is not signed is [`Fault::Forged`]; a provider that cannot check it refuses.
    fn heard(&self, message: &Webhook<'_>) -> Result<Option<String>, Fault>;
}
