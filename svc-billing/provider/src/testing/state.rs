//! The stand-in's data, and the changes to it that do not come over HTTP.

use std::collections::HashMap;

use chrono::{DateTime, SecondsFormat, Utc};
use http::Method;
use rust_decimal::Decimal;
use serde_json::Value;

use super::fault::InjectedFault;
use super::reply::Reply;
use crate::MandateStatus;

pub(super) struct State {
    pub base: String,
    pub api_key: &'static str,
    pub now: Box<dyn Fn() -> DateTime<Utc> + Send + Sync>,
    pub customers: Vec<(String, Value)>,
    pub payments: Vec<HeldPayment>,
    pub mandates: Vec<HeldMandate>,
    /// By idempotency key.
    pub keys: HashMap<String, FirstUse>,
    pub faults: Vec<(Method, InjectedFault)>,
    pub new_mandates: MandateStatus,
    pub webhook_secret: Option<String>,
    pub muted: bool,
    pub page_size: usize,
    pub requests: usize,
    ids: usize,
}

/// The request that used an idempotency key first, and its answer.
pub(super) struct FirstUse {
    pub request: String,
    pub reply: Reply,
}

pub(super) struct HeldPayment {
    pub id: String,
    pub created_at: String,
    pub status: &'static str,
    pub currency: String,
    pub amount: Decimal,
    pub sequence: String,
    pub customer: Option<String>,
    pub mandate: Option<String>,
    pub metadata: Value,
    pub description: String,
    pub redirect_url: Option<String>,
    pub webhook_url: Option<String>,
    pub paid_at: Option<String>,
    pub failure: Option<String>,
    pub cancelable: bool,
    pub charged_back: Decimal,
    pub refunds: Vec<HeldRefund>,
}

pub(super) struct HeldRefund {
    pub id: String,
    pub amount: Decimal,
    pub metadata: Value,
    pub created_at: String,
}

pub(super) struct HeldMandate {
    pub id: String,
    pub customer: String,
    pub status: MandateStatus,
    pub created_at: String,
}

impl HeldPayment {
    pub(super) fn refunded(&self) -> Decimal {
        self.refunds.iter().map(|refund| refund.amount).sum()
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.status, "open" | "pending")
    }
}

impl State {
    pub(super) fn new(
        base: String,
        api_key: &'static str,
        now: Box<dyn Fn() -> DateTime<Utc> + Send + Sync>,
    ) -> Self {
        Self {
            base,
            api_key,
            now,
            customers: Vec::new(),
            payments: Vec::new(),
            mandates: Vec::new(),
            keys: HashMap::new(),
            faults: Vec::new(),
            new_mandates: MandateStatus::Valid,
            webhook_secret: None,
            muted: false,
            page_size: 250,
            requests: 0,
            ids: 0,
        }
    }

    pub(super) fn id(&mut self, prefix: &str) -> String {
        self.ids += 1;
        format!("{prefix}{:010}", self.ids)
    }

    /// The current time in Mollie's format: whole seconds, with an offset.
    pub(super) fn time(&self) -> String {
        (self.now)().to_rfc3339_opts(SecondsFormat::Secs, false)
    }

    /// Removes the fault that was injected for the next request with this method.
    pub(super) fn take_fault(&mut self, method: &Method) -> Option<InjectedFault> {
        let index = self.faults.iter().position(|(of, _)| of == method)?;
        Some(self.faults.remove(index).1)
    }

    pub(super) fn payment_mut(&mut self, id: &str) -> &mut HeldPayment {
        self.payments.iter_mut().find(|held| held.id == id).expect("a payment of the stand-in")
    }

    pub(super) fn mandate_mut(&mut self, id: &str) -> &mut HeldMandate {
        self.mandates.iter_mut().find(|held| held.id == id).expect("a mandate of the stand-in")
    }

    pub(super) fn pay(&mut self, id: &str) {
        let time = self.time();
        let held = self.payment_mut(id);
        held.status = "paid";
        held.paid_at = Some(time.clone());
        let first = (held.sequence == "first").then(|| held.customer.clone()).flatten();
        if let Some(customer) = first {
            let mandate = self.id("mdt_");
            self.payment_mut(id).mandate = Some(mandate.clone());
            let status = self.new_mandates;
            self.mandates.push(HeldMandate { id: mandate, customer, status, created_at: time });
        }
    }

    pub(super) fn refund(&mut self, payment: &str, amount: Decimal, metadata: Value) {
        let (id, created_at) = (self.id("re_"), self.time());
        self.payment_mut(payment).refunds.push(HeldRefund { id, amount, metadata, created_at });
    }

    pub(super) fn add_foreign_payment(&mut self, metadata: Value) -> String {
        let (id, created_at) = (self.id("tr_"), self.time());
        self.payments.push(HeldPayment {
            id: id.clone(),
            created_at,
            status: "open",
            currency: "EUR".to_owned(),
            amount: Decimal::ONE,
            sequence: "oneoff".to_owned(),
            customer: None,
            mandate: None,
            metadata,
            description: "A payment of another program".to_owned(),
            redirect_url: None,
            webhook_url: None,
            paid_at: None,
            failure: None,
            cancelable: false,
            charged_back: Decimal::ZERO,
            refunds: Vec::new(),
        });
        id
    }
}
