//! Mollie as a provider, over its public API (v2).
//!
//! Mollie remembers an idempotency key for an hour. A payment whose answer was lost longer ago is looked for with
//! `find_payment`; a refund carries its key inside and is looked for by `refund` itself.
//!
//! Mollie has to reach the webhook's address: it refuses payments with one on this machine.

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

use crate::{Fault, Key, Mandate, NewCustomer, NewPayment, Payment, Provider, Refund, Sequence, Webhook};
use rest::Rest;
use wire::is_id;

/// The most that Mollie puts on a page, and the most pages that are looked through.
const PAGE: usize = 250;
const MAX_PAGES: usize = 40;
/// By how much Mollie's clock may be behind ours.
const CLOCKS: TimeDelta = TimeDelta::minutes(5);

/// A profile at Mollie.
pub struct Mollie {
    rest: Rest,
    webhook_secrets: Vec<String>,
}

impl Mollie {
    /// The error says which setting has to be mended.
    pub fn new(settings: &Settings) -> Result<Self, String> {
        Ok(Self { rest: Rest::new(settings)?, webhook_secrets: settings.webhook_secrets() })
    }

    async fn page(
        &self,
        list: &str,
        from: Option<&str>,
    ) -> Result<(Vec<Value>, Option<String>), rest::Failure> {
        let from = from.map(|from| format!("&from={from}")).unwrap_or_default();
        let body = self.rest.get(&format!("{list}?limit={PAGE}{from}")).await?;
        let name = list.rsplit('/').next().unwrap_or(list);
        Ok(wire::page(body, name)?)
    }
}

#[tonic::async_trait]
impl Provider for Mollie {
    fn name(&self) -> &'static str {
        "mollie"
    }

    async fn create_customer(&self, key: &Key, customer: &NewCustomer) -> Result<String, Fault> {
        wire::customer_id(self.rest.post("customers", key, &wire::new_customer(customer)).await?)
    }

    async fn create_payment(&self, key: &Key, payment: &NewPayment) -> Result<Payment, Fault> {
        match self.rest.post("payments", key, &wire::new_payment(payment)?).await {
            Ok(body) => wire::payment(body),
            Err(failure) if matches!(payment.sequence, Sequence::Recurring { .. }) => {
                Err(about_mandate(failure.fault))
            }
            Err(failure) => Err(failure.fault),
        }
    }

    async fn payment(&self, id: &str) -> Result<Option<Payment>, Fault> {
        if !is_id(id, "tr_") {
            return Ok(None);
        }
        match self.rest.get(&format!("payments/{id}")).await {
            Ok(body) => wire::payment(body).map(Some),
            Err(failure) if failure.is_missing() => Ok(None),
            Err(failure) => Err(failure.fault),
        }
    }

    async fn find_payment(&self, reference: &str, since: DateTime<Utc>) -> Result<Option<Payment>, Fault> {
        let oldest = since.checked_sub_signed(CLOCKS).unwrap_or(since);
        let mut from = None;
        for _ in 0..MAX_PAGES {
            let (entries, next) = self.page("payments", from.as_deref()).await?;
            for entry in entries {
                let glance: wire::Glance = wire::read(entry.clone())?;
                if glance.has_reference(reference) {
                    return wire::payment(entry).map(Some);
                }
                if glance.created_at < oldest {
                    return Ok(None);
                }
            }
            from = next;
            if from.is_none() {
                return Ok(None);
            }
        }
        Err(wire::unclear("there are too many payments to look through"))
    }

    async fn cancel_payment(&self, key: &Key, id: &str) -> Result<Option<Payment>, Fault> {
        if !is_id(id, "tr_") {
            return Ok(None);
        }
        match self.rest.delete(&format!("payments/{id}"), key).await {
            Ok(body) => wire::payment(body).map(Some),
            Err(failure) if failure.is_missing() => Ok(None),
            // Paid already, or of a kind that only the payer or time can end.
            Err(failure) if failure.is_unprocessable() => self.payment(id).await,
            Err(failure) => Err(failure.fault),
        }
    }

    async fn mandates(&self, customer: &str) -> Result<Vec<Mandate>, Fault> {
        if !is_id(customer, "cst_") {
            return Ok(Vec::new());
        }
        let list = format!("customers/{customer}/mandates");
        let (mut mandates, mut from) = (Vec::new(), None);
        for _ in 0..MAX_PAGES {
            let (entries, next) = match self.page(&list, from.as_deref()).await {
                Ok(page) => page,
                // A customer that is not there has no mandates.
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
        Err(wire::unclear("there are too many mandates to look through"))
    }

    async fn refund(&self, key: &Key, payment: &str, amount: Decimal) -> Result<Refund, Fault> {
        let absent = || Fault::Refused { detail: "there is no such payment".to_owned(), field: None };
        if !is_id(payment, "tr_") {
            return Err(absent());
        }
        let read = match self.rest.get(&format!("payments/{payment}?embed=refunds")).await {
            Ok(body) => wire::refunds(&body, key),
            Err(failure) if failure.is_missing() => return Err(absent()),
            Err(failure) => Err(failure.fault),
        };
        let (currency, made) = read.map_err(undone)?;
        if let Some(made) = made {
            return Ok(made);
        }
        let body = wire::new_refund(key, amount, &currency)?;
        wire::refund(self.rest.post(&format!("payments/{payment}/refunds"), key, &body).await?)
    }

    fn heard(&self, message: &Webhook<'_>) -> Result<Option<String>, Fault> {
        webhook::heard(message, &self.webhook_secrets)
    }
}

/// Tells a refusal of the mandate from others. Mollie names the field or says it in words; a customer that is gone has no
/// mandates either.
fn about_mandate(fault: Fault) -> Fault {
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

/// Before anything was asked for, no unclear answer leaves a doubt.
fn undone(fault: Fault) -> Fault {
    match fault {
        Fault::Unknown { detail } => Fault::Unavailable { detail, retry_after: None },
        other => other,
    }
}
