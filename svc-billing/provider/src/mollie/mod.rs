//! The provider Mollie, over its public API (v2).
//!
//! Mollie remembers an idempotency key for an hour. A payment whose answer was lost longer ago is searched for with
//! `find_payment_by_reference`. A refund stores its key in its metadata, where `create_refund` looks for it first.
//!
//! Mollie has to reach the webhook URL: it refuses payments whose URL is on this machine.

mod money;
mod rest;
mod settings;
mod webhook;
mod wire;

#[cfg(feature = "testing")]
pub(crate) use money::Money;
pub use settings::Settings;

use chrono::{DateTime, TimeDelta, Utc};
use rust_decimal::Decimal;
use serde_json::Value;

use crate::{
    Fault, IdempotencyKey, Mandate, NewCustomer, NewPayment, Payment, Provider, Refund, Sequence, Webhook,
};
use rest::Rest;
use wire::is_id;

/// The largest page that Mollie serves, and the number of pages after which a search gives up.
const PAGE_SIZE: usize = 250;
const MAX_PAGES: usize = 40;
/// By how much Mollie's clock may be behind ours.
const MAX_CLOCK_SKEW: TimeDelta = TimeDelta::minutes(5);

/// A profile at Mollie.
pub struct Mollie {
    rest: Rest,
    webhook_secrets: Vec<String>,
}

impl Mollie {
    /// The error names the setting that is not valid.
    pub fn new(settings: &Settings) -> Result<Self, String> {
        Ok(Self { rest: Rest::new(settings)?, webhook_secrets: settings.webhook_secrets() })
    }

    async fn page(
        &self,
        list: &str,
        from: Option<&str>,
    ) -> Result<(Vec<Value>, Option<String>), rest::Failure> {
        let from = from.map(|from| format!("&from={from}")).unwrap_or_default();
        let body = self.rest.get(&format!("{list}?limit={PAGE_SIZE}{from}")).await?;
        let name = list.rsplit('/').next().unwrap_or(list);
        Ok(wire::page(body, name)?)
    }
}

#[tonic::async_trait]
impl Provider for Mollie {
    fn name(&self) -> &'static str {
        "mollie"
    }

    async fn create_customer(&self, key: &IdempotencyKey, customer: &NewCustomer) -> Result<String, Fault> {
        wire::customer_id(self.rest.post("customers", key, &wire::new_customer(customer)).await?)
    }

    async fn create_payment(&self, key: &IdempotencyKey, payment: &NewPayment) -> Result<Payment, Fault> {
        match self.rest.post("payments", key, &wire::new_payment(payment)?).await {
            Ok(body) => wire::payment(body),
            Err(failure) if matches!(payment.sequence, Sequence::Recurring { .. }) => {
                Err(mandate_fault(failure.fault))
            }
            Err(failure) => Err(failure.fault),
        }
    }

    async fn find_payment(&self, id: &str) -> Result<Option<Payment>, Fault> {
        if !is_id(id, "tr_") {
            return Ok(None);
        }
        match self.rest.get(&format!("payments/{id}")).await {
            Ok(body) => wire::payment(body).map(Some),
            Err(failure) if failure.is_missing() => Ok(None),
            Err(failure) => Err(failure.fault),
        }
    }

    async fn find_payment_by_reference(
        &self,
        reference: &str,
        since: DateTime<Utc>,
    ) -> Result<Option<Payment>, Fault> {
        let oldest = since.checked_sub_signed(MAX_CLOCK_SKEW).unwrap_or(since);
        let mut from = None;
        for _ in 0..MAX_PAGES {
            let (entries, next) = self.page("payments", from.as_deref()).await?;
            for entry in entries {
                let listed: wire::ListEntry = wire::read(entry.clone())?;
                if listed.has_reference(reference) {
                    return wire::payment(entry).map(Some);
                }
                // The list is sorted newest first: everything after this entry is older still.
                if listed.created_at < oldest {
                    return Ok(None);
                }
            }
            from = next;
            if from.is_none() {
                return Ok(None);
            }
        }
        Err(wire::unexpected_answer("there are too many payments to search"))
    }

    async fn cancel_payment(&self, key: &IdempotencyKey, id: &str) -> Result<Option<Payment>, Fault> {
        if !is_id(id, "tr_") {
            return Ok(None);
        }
        match self.rest.delete(&format!("payments/{id}"), key).await {
            Ok(body) => wire::payment(body).map(Some),
            Err(failure) if failure.is_missing() => Ok(None),
            // The payment is paid already, or is of a kind that only the payer or a timeout can end.
            Err(failure) if failure.is_unprocessable() => self.find_payment(id).await,
            Err(failure) => Err(failure.fault),
        }
    }

    async fn list_mandates(&self, customer: &str) -> Result<Vec<Mandate>, Fault> {
        if !is_id(customer, "cst_") {
            return Ok(Vec::new());
        }
        let list = format!("customers/{customer}/mandates");
        let (mut mandates, mut from) = (Vec::new(), None);
        for _ in 0..MAX_PAGES {
            let (entries, next) = match self.page(&list, from.as_deref()).await {
                Ok(page) => page,
                // A customer that does not exist has no mandates.
                Err(failure) if failure.is_missing() => return Ok(Vec::new()),
                Err(failure) => return Err(failure.fault),
            };
            for entry in entries {
                mandates.push(wire::mandate(entry)?);
            }
            from = next;
            if from.is_none() {
                mandates.sort_by_key(|(created_at, _)| std::cmp::Reverse(*created_at));
                return Ok(mandates.into_iter().map(|(_, mandate)| mandate).collect());
            }
        }
        Err(wire::unexpected_answer("there are too many mandates to list"))
    }

    async fn create_refund(
        &self,
        key: &IdempotencyKey,
        payment: &str,
        amount: Decimal,
    ) -> Result<Refund, Fault> {
        let absent = || Fault::Refused { detail: "there is no such payment".to_owned(), field: None };
        if !is_id(payment, "tr_") {
            return Err(absent());
        }
        let read = match self.rest.get(&format!("payments/{payment}?embed=refunds")).await {
            Ok(body) => wire::refunds(&body, key),
            Err(failure) if failure.is_missing() => return Err(absent()),
            Err(failure) => Err(failure.fault),
        };
        let (currency, earlier) = read.map_err(not_attempted)?;
        // An earlier attempt created the refund and its answer was lost. Money must not be returned twice.
        if let Some(earlier) = earlier {
            return Ok(earlier);
        }
        let body = wire::new_refund(key, amount, &currency)?;
        wire::refund(self.rest.post(&format!("payments/{payment}/refunds"), key, &body).await?)
    }

    fn verify_webhook(&self, message: &Webhook<'_>) -> Result<Option<String>, Fault> {
        webhook::verify(message, &self.webhook_secrets)
    }
}

/// Distinguishes a refusal of the mandate from other refusals. Mollie names the field or mentions the mandate in the
/// text; a customer that was deleted has no mandates either.
fn mandate_fault(fault: Fault) -> Fault {
    match fault {
        Fault::Refused { detail, field }
            if matches!(field.as_deref(), Some("mandateId" | "customerId"))
                || detail.to_lowercase().contains("mandate") =>
        {
            Fault::MandateInvalid { detail }
        }
        other => other,
    }
}

/// The fault of a request that only reads. It created nothing, so an unknown outcome can be repeated safely.
fn not_attempted(fault: Fault) -> Fault {
    match fault {
        Fault::OutcomeUnknown { detail } => Fault::Unavailable { detail, retry_after: None },
        other => other,
    }
}
