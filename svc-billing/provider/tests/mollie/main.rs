//! The adapter against the stand-in, over real HTTP.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test stops where its fact is false")]

mod calls;
mod faults;
mod lost;
mod webhooks;

use chrono::{DateTime, TimeDelta, Utc};
use provider::mollie::{Mollie, Settings};
use provider::testing::StandIn;
use provider::{IdempotencyKey, NewCustomer, NewPayment, Provider, Sequence};
use rust_decimal::Decimal;

pub fn key(name: &str) -> IdempotencyKey {
    IdempotencyKey(name.to_owned())
}

pub fn cents(cents: i64) -> Decimal {
    Decimal::new(cents, 2)
}

pub fn moment() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::seconds(1_794_740_400)
}

pub fn anna() -> NewCustomer {
    NewCustomer {
        reference: "client-1".to_owned(),
        name: "Anna Vos".to_owned(),
        email: Some("anna@example.org".to_owned()),
    }
}

pub fn payment(reference: &str, sequence: Sequence, amount: Decimal) -> NewPayment {
    let collected = matches!(sequence, Sequence::Recurring { .. });
    NewPayment {
        reference: reference.to_owned(),
        sequence,
        amount,
        currency: "EUR".to_owned(),
        description: "Invoice 2026-0001".to_owned(),
        return_url: (!collected).then(|| "https://example.org/thanks".to_owned()),
        webhook_url: "https://example.org/webhook".to_owned(),
    }
}

/// The stand-in at a fixed time, and the adapter that talks to it.
pub async fn pair() -> (StandIn, Mollie) {
    let stand_in = StandIn::start_at(moment).await;
    let mollie = Mollie::new(&stand_in.settings()).expect("usable settings");
    (stand_in, mollie)
}

/// An adapter with a short timeout.
pub fn with_short_timeout(stand_in: &StandIn) -> Mollie {
    let settings = Settings { mollie_timeout_ms: 1_000, ..stand_in.settings() };
    Mollie::new(&settings).expect("usable settings")
}

/// A customer whose first payment was paid, and the mandate that it granted.
pub async fn mandated(stand_in: &StandIn, mollie: &Mollie) -> (String, String) {
    let customer = mollie.create_customer(&key("customer"), &anna()).await.unwrap();
    let first = Sequence::First { customer: customer.clone() };
    let first = mollie.create_payment(&key("first"), &payment("first", first, cents(1))).await.unwrap();
    stand_in.pay(&first.id).await;
    let mandate = mollie.find_payment(&first.id).await.unwrap().unwrap().mandate.unwrap();
    (customer, mandate)
}
