//! The provider of an installation that has none: neither Mollie is configured nor the sandbox allowed. No payment is
//! requested from it, see [`require_provider`]; payments that were requested from another provider wait until that
//! provider is configured again. A file of its own, because it implements the interface of providers.
//!
//! [`require_provider`]: super::PaymentProcessor::require_provider

use chrono::{DateTime, Utc};
use provider::{Fault, IdempotencyKey, Mandate, NewCustomer, NewPayment, Payment, Provider, Refund, Webhook};
use rust_decimal::Decimal;

/// The name of the provider of accounts that have none.
pub(crate) const NO_PROVIDER: &str = "none";

pub(crate) struct NoProvider;

#[tonic::async_trait]
impl Provider for NoProvider {
    fn name(&self) -> &'static str {
        NO_PROVIDER
    }

    async fn create_customer(&self, _: &IdempotencyKey, _: &NewCustomer) -> Result<String, Fault> {
        Err(not_configured())
    }

    async fn create_payment(&self, _: &IdempotencyKey, _: &NewPayment) -> Result<Payment, Fault> {
        Err(not_configured())
    }

    async fn find_payment(&self, _: &str) -> Result<Option<Payment>, Fault> {
        Err(not_configured())
    }

    async fn find_payment_by_reference(&self, _: &str, _: DateTime<Utc>) -> Result<Option<Payment>, Fault> {
        Err(not_configured())
    }

    async fn cancel_payment(&self, _: &IdempotencyKey, _: &str) -> Result<Option<Payment>, Fault> {
        Err(not_configured())
    }

    async fn list_mandates(&self, _: &str) -> Result<Vec<Mandate>, Fault> {
        Err(not_configured())
    }

    async fn create_refund(&self, _: &IdempotencyKey, _: &str, _: Decimal) -> Result<Refund, Fault> {
        Err(not_configured())
    }

    fn verify_webhook(&self, _: &Webhook<'_>) -> Result<Option<String>, Fault> {
        Err(not_configured())
    }
}

fn not_configured() -> Fault {
    Fault::Refused { detail: "no payment provider is set up".to_owned(), field: None }
}
