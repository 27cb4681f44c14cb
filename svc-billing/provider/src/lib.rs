//! The interface to payment providers: the calls that billing makes, and nothing more. Independent of invoices.
//!
//! Every call that creates or changes something carries an [`IdempotencyKey`]: a provider that receives a key again
//! returns its first answer. A call whose outcome is unknown ([`Fault::OutcomeUnknown`]) is repeated with the
//! same key, or resolved by a search for our own `reference`, which the provider stores with the payment.

pub mod mollie;
#[cfg(feature = "testing")]
pub mod testing;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;

/// Identifies one command to the provider. A command that is repeated has the same key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey(pub String);

/// A client who is to become a customer at the provider.
#[derive(Clone, Debug)]
pub struct NewCustomer {
    /// Our own id of the client.
    pub reference: String,
    pub name: String,
    pub email: Option<String>,
}

/// The role of a payment in direct debit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sequence {
    /// Paid once, by whoever opens the checkout page.
    OneOff,
    /// Paid once by the client; the payment grants a mandate.
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
    /// Called by the provider when the payment changes.
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

impl Status {
    const NAMES: [(Self, &'static str); 7] = [
        (Self::Open, "open"),
        (Self::Pending, "pending"),
        (Self::Authorized, "authorized"),
        (Self::Paid, "paid"),
        (Self::Canceled, "canceled"),
        (Self::Expired, "expired"),
        (Self::Failed, "failed"),
    ];

    pub fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|(status, _)| *status == self).map_or("", |(_, name)| name)
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(_, known)| *known == name).map(|(status, _)| status)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Payment {
    /// The provider's id.
    pub id: String,
    pub reference: String,
    pub status: Status,
    pub amount: Decimal,
    /// Returned to the payer by us. The status stays `Paid`.
    pub refunded: Decimal,
    /// Taken back by the payer's bank. The status stays `Paid`.
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

impl MandateStatus {
    const NAMES: [(Self, &'static str); 3] =
        [(Self::Pending, "pending"), (Self::Valid, "valid"), (Self::Invalid, "invalid")];

    pub fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|(status, _)| *status == self).map_or("", |(_, name)| name)
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(_, known)| *known == name).map(|(status, _)| status)
    }
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

/// Why a call to a provider failed. The variants differ in what the caller may do next.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Fault {
    /// The provider refused, and would refuse the same request again.
    #[error("the payment provider refused: {detail}")]
    Refused { detail: String, field: Option<String> },
    /// The provider refused to collect with this mandate, which was withdrawn or never became valid. A repeat would be
    /// refused too.
    #[error("the payment provider refused the mandate: {detail}")]
    MandateInvalid { detail: String },
    /// Nothing was done: the provider is busy or cannot be reached. A repeat is safe after `retry_after` seconds.
    #[error("the payment provider cannot be reached now: {detail}")]
    Unavailable { detail: String, retry_after: Option<u64> },
    /// The answer was lost or could not be read, so the call may have been carried out. Search before repeating it.
    #[error("the payment provider did not answer clearly: {detail}")]
    OutcomeUnknown { detail: String },
    /// The webhook was not signed by the provider.
    #[error("the webhook's signature is not valid")]
    Forged,
}

/// A message from the provider, as it was received over HTTP.
#[derive(Clone, Debug)]
pub struct Webhook<'a> {
    pub signature: Option<&'a str>,
    pub body: &'a [u8],
}

#[tonic::async_trait]
pub trait Provider: Send + Sync {
    /// The name in public answers and in the database: `sandbox` or `mollie`.
    fn name(&self) -> &'static str;

    /// Returns the provider's id of the new customer.
    async fn create_customer(&self, key: &IdempotencyKey, customer: &NewCustomer) -> Result<String, Fault>;

    async fn create_payment(&self, key: &IdempotencyKey, payment: &NewPayment) -> Result<Payment, Fault>;

    async fn find_payment(&self, id: &str) -> Result<Option<Payment>, Fault>;

    /// Finds a payment by our reference. For a payment whose id was lost with the answer to its creation.
    async fn find_payment_by_reference(
        &self,
        reference: &str,
        since: DateTime<Utc>,
    ) -> Result<Option<Payment>, Fault>;

    /// Cancels a payment that is still open. A payment that is no longer open is returned unchanged.
    async fn cancel_payment(&self, key: &IdempotencyKey, id: &str) -> Result<Option<Payment>, Fault>;

    /// The mandates of a customer, newest first. A withdrawn mandate may be missing; providers send no webhook for it.
    async fn list_mandates(&self, customer: &str) -> Result<Vec<Mandate>, Fault>;

    async fn create_refund(
        &self,
        key: &IdempotencyKey,
        payment: &str,
        amount: Decimal,
    ) -> Result<Refund, Fault>;

    /// Checks the signature of a message and returns the id of the payment it concerns. The caller fetches the
    /// payment; nothing else in the message is trusted. A message without a valid signature is [`Fault::Forged`]; a
    /// provider that has no secret to check it with refuses.
    fn verify_webhook(&self, message: &Webhook<'_>) -> Result<Option<String>, Fault>;
}
