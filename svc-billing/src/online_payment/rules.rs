//! How a payment changes with a provider's answers, and when the provider is asked again. Pure.

use chrono::{DateTime, TimeDelta, Utc};
use proto::billing::PaymentStatus;
use rust_decimal::Decimal;
use serde_json::json;

use super::{OnlinePayment, Purpose, Status};

/// Characters stored of a text from a provider.
const MAX_PROVIDER_TEXT: usize = 1000;

/// A provider's answer about a payment.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    pub payment: provider::Payment,
    /// The mandates of the payment's customer, newest first, if they were fetched.
    pub mandates: Option<Vec<provider::Mandate>>,
    /// When the provider was asked.
    pub at: DateTime<Utc>,
    /// Whether it is the answer to a creation. A repeated creation returns the state at the time of the first one.
    pub created: bool,
}

/// The progress of a payment. A status with a lower rank is never stored over one with a higher rank.
fn rank(status: Status) -> u8 {
    match status {
        Status::Requested => 0,
        Status::Open => 1,
        Status::Pending | Status::Authorized => 2,
        Status::Paid | Status::Canceled | Status::Expired | Status::Failed => 3,
    }
}

/// Whether a status may replace another. A payment never goes back, except that `Paid` replaces every other status:
/// money that arrived is always recorded, also on a payment that was canceled or has expired here.
fn may_replace(from: Status, to: Status) -> bool {
    from != Status::Paid && (to == Status::Paid || rank(to) > rank(from) || (rank(from), rank(to)) == (2, 2))
}

/// The payment after an answer of the provider. Answers can arrive late and in any order, so an answer that is older
/// than the stored state changes nothing but a missing id.
pub(crate) fn apply(current: &OnlinePayment, observed: &Observed) -> OnlinePayment {
    let mut payment = current.clone();
    let answer = &observed.payment;
    if payment.external_id.is_empty() {
        payment.external_id.clone_from(&answer.id);
    }
    let is_first = current.status == Status::Requested;
    if !is_first && (observed.created || observed.at < current.asked_at) {
        return payment;
    }
    let status = Status::from(answer.status);
    if may_replace(current.status, status) {
        payment.status = status;
        payment.failure = answer.failure.clone().unwrap_or_default();
    }
    if payment.status == Status::Paid {
        payment.paid_at = payment.paid_at.or(answer.paid_at).or(Some(observed.at));
    }
    let checkout = answer.checkout_url.as_ref().filter(|_| matches!(payment.status, Status::Open));
    payment.checkout_url = checkout.cloned().unwrap_or_default();
    // Taken over as they are, also when they are lower than before: a bank can reverse a chargeback.
    payment.refunded = answer.refunded;
    payment.charged_back = answer.charged_back;
    payment.asked_at = observed.at;
    payment
}

/// The payment after a refusal by the provider. A payment that has ended meanwhile stays as it is.
pub(crate) fn fail(current: &OnlinePayment, reason: &str) -> OnlinePayment {
    if !current.status.is_open() {
        return current.clone();
    }
    OnlinePayment {
        status: Status::Failed,
        failure: truncated(reason),
        checkout_url: String::new(),
        ..current.clone()
    }
}

/// A text of the provider in the length in which it is stored. Postgres cannot store NUL characters.
pub(crate) fn truncated(text: &str) -> String {
    text.chars().filter(|letter| *letter != '\0').take(MAX_PROVIDER_TEXT).collect()
}

/// Status and amount of a payment in the list of its invoice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvoiceEntry {
    pub status: PaymentStatus,
    pub amount: Decimal,
}

/// Status and amount in the list of the invoice. A payment of which a part was returned counts with the rest; one
/// that was returned entirely shows its full amount and how it was returned.
pub(crate) fn invoice_entry(payment: &OnlinePayment) -> InvoiceEntry {
    let left = payment.amount - payment.refunded - payment.charged_back;
    let status = match payment.status {
        Status::Requested => PaymentStatus::Created,
        Status::Open => PaymentStatus::Open,
        Status::Pending => PaymentStatus::Pending,
        Status::Authorized => PaymentStatus::Authorized,
        Status::Paid if left > Decimal::ZERO => {
            return InvoiceEntry { status: PaymentStatus::Paid, amount: left };
        }
        Status::Paid if !payment.charged_back.is_zero() => PaymentStatus::Chargeback,
        Status::Paid => PaymentStatus::Refunded,
        Status::Canceled => PaymentStatus::Canceled,
        Status::Expired => PaymentStatus::Expired,
        Status::Failed => PaymentStatus::Failed,
    };
    InvoiceEntry { status, amount: payment.amount }
}

/// What the provider reported beyond the fields of a payment, as the text of a JSON object.
pub(crate) fn feedback(payment: &OnlinePayment) -> String {
    let mut data = json!({"purpose": payment.purpose.name(), "amount": payment.amount});
    let returned = [("refunded", payment.refunded), ("charged_back", payment.charged_back)];
    for (name, amount) in returned.into_iter().filter(|(_, amount)| !amount.is_zero()) {
        data[name] = json!(amount);
    }
    let texts = [("failure", &payment.failure), ("checkout_url", &payment.checkout_url)];
    for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        data[name] = json!(text);
    }
    data.to_string()
}

/// When to poll the provider next if no webhook arrives; `None` when the payment can no longer change. A checkout is
/// over within the hour, a collection takes days, and a payment can be charged back for weeks. Each interval is as
/// long as the payment is old, within bounds.
pub(crate) fn next_poll(
    payment: &OnlinePayment,
    waits_for_mandate: bool,
    now: DateTime<Utc>,
) -> Option<DateTime<Utc>> {
    let age = now - payment.created_at;
    let (min_interval, max_interval) = match payment.status {
        Status::Open | Status::Authorized => (TimeDelta::minutes(1), TimeDelta::hours(1)),
        Status::Pending => (TimeDelta::minutes(1), TimeDelta::hours(12)),
        Status::Paid if waits_for_mandate && age < TimeDelta::days(30) => {
            (TimeDelta::minutes(1), TimeDelta::hours(12))
        }
        Status::Paid if payment.purpose != Purpose::Verification && age < TimeDelta::days(90) => {
            (TimeDelta::days(1), TimeDelta::days(14))
        }
        Status::Requested | Status::Paid | Status::Canceled | Status::Expired | Status::Failed => {
            return None;
        }
    };
    Some(now + age.clamp(min_interval, max_interval))
}

/// For how long the creation of a payment is repeated. After an hour no payer waits for a checkout any more.
pub(crate) fn creation_timeout(purpose: Purpose) -> TimeDelta {
    match purpose {
        Purpose::Verification | Purpose::Checkout => TimeDelta::hours(1),
        Purpose::Collection => TimeDelta::days(3),
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
