//! What is made of a provider's answers. Pure.

use chrono::{DateTime, TimeDelta, Utc};
use proto::billing::PaymentStatus;
use rust_decimal::Decimal;
use serde_json::json;

use super::{OnlinePayment, Purpose, Status};

/// What a provider said, and when it was asked.
#[derive(Clone, Debug)]
pub struct Seen {
    pub payment: provider::Payment,
    /// The mandates of the payment's customer, newest first, if they were asked for.
    pub mandates: Option<Vec<provider::Mandate>>,
    pub at: DateTime<Utc>,
    /// The answer to a creation: a repeat of it tells how things were then.
    pub created: bool,
}

/// How far a payment has come.
fn rank(status: Status) -> u8 {
    match status {
        Status::Wanted => 0,
        Status::Open => 1,
        Status::Pending | Status::Authorized => 2,
        Status::Paid | Status::Canceled | Status::Expired | Status::Failed => 3,
    }
}

/// Never back, except that money that came is always believed.
fn may_follow(from: Status, to: Status) -> bool {
    from != Status::Paid && (to == Status::Paid || rank(to) > rank(from) || (rank(from), rank(to)) == (2, 2))
}

/// What is known after an answer. Answers can come late and in any order.
pub fn learn(known: &OnlinePayment, seen: &Seen) -> OnlinePayment {
    let mut learnt = known.clone();
    let told = &seen.payment;
    if learnt.external_id.is_empty() {
        learnt.external_id.clone_from(&told.id);
    }
    let first = known.status == Status::Wanted;
    if !first && (seen.created || seen.at < known.asked_at) {
        return learnt;
    }
    let status = Status::from(told.status);
    if may_follow(known.status, status) {
        learnt.status = status;
        learnt.failure = told.failure.clone().unwrap_or_default();
    }
    if learnt.status == Status::Paid {
        learnt.paid_at = learnt.paid_at.or(told.paid_at).or(Some(seen.at));
    }
    let checkout = told.checkout_url.as_ref().filter(|_| matches!(learnt.status, Status::Open));
    learnt.checkout_url = checkout.cloned().unwrap_or_default();
    learnt.refunded = told.refunded;
    learnt.charged_back = told.charged_back;
    learnt.asked_at = seen.at;
    learnt
}

/// Status and amount as an invoice shows them. What partly went back counts with what is left.
pub fn shown(payment: &OnlinePayment) -> (PaymentStatus, Decimal) {
    let left = payment.amount - payment.refunded - payment.charged_back;
    let status = match payment.status {
        Status::Wanted => PaymentStatus::Created,
        Status::Open => PaymentStatus::Open,
        Status::Pending => PaymentStatus::Pending,
        Status::Authorized => PaymentStatus::Authorized,
        Status::Paid if left > Decimal::ZERO => return (PaymentStatus::Paid, left),
        Status::Paid if !payment.charged_back.is_zero() => PaymentStatus::Chargeback,
        Status::Paid => PaymentStatus::Refunded,
        Status::Canceled => PaymentStatus::Canceled,
        Status::Expired => PaymentStatus::Expired,
        Status::Failed => PaymentStatus::Failed,
    };
    (status, payment.amount)
}

/// What the provider said beyond the fields of a payment: JSON text of an object.
pub fn feedback(payment: &OnlinePayment) -> String {
    let mut data = json!({"purpose": payment.purpose.name(), "amount": payment.amount});
    let back = [("refunded", payment.refunded), ("charged_back", payment.charged_back)];
    for (name, amount) in back.into_iter().filter(|(_, amount)| !amount.is_zero()) {
        data[name] = json!(amount);
    }
    let texts = [("failure", &payment.failure), ("checkout_url", &payment.checkout_url)];
    for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        data[name] = json!(text);
    }
    data.to_string()
}

/// When to ask next without having heard anything. A checkout is over within the hour, a collection takes days, and
/// money that came can be taken back for weeks: each wait is as long as the payment is old, within bounds.
pub fn next_ask(
    payment: &OnlinePayment,
    waits_for_mandate: bool,
    now: DateTime<Utc>,
) -> Option<DateTime<Utc>> {
    let age = now - payment.created_at;
    let (least, most) = match payment.status {
        Status::Open | Status::Authorized => (TimeDelta::minutes(1), TimeDelta::hours(1)),
        Status::Pending => (TimeDelta::minutes(1), TimeDelta::hours(12)),
        Status::Paid if waits_for_mandate && age < TimeDelta::days(30) => {
            (TimeDelta::minutes(1), TimeDelta::hours(12))
        }
        Status::Paid if payment.purpose != Purpose::Verification && age < TimeDelta::days(90) => {
            (TimeDelta::days(1), TimeDelta::days(14))
        }
        Status::Wanted | Status::Paid | Status::Canceled | Status::Expired | Status::Failed => return None,
    };
    Some(now + age.clamp(least, most))
}

/// For how long a wish for a payment is repeated. Nobody waits for a checkout after an hour.
pub fn patience(purpose: Purpose) -> TimeDelta {
    match purpose {
        Purpose::Verification | Purpose::Checkout => TimeDelta::hours(1),
        Purpose::Collection => TimeDelta::days(3),
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
