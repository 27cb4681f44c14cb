//! The stand-in's payments: what Mollie refuses, and what a payment looks like.

use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::reply::Reply;
use super::state::{HeldPayment, State};
use crate::MandateStatus;
use crate::mollie::Money;

impl State {
    pub(super) fn create_payment(&mut self, body: &Value) -> Reply {
        let text = |name: &str| body[name].as_str().map(str::to_owned);
        let (currency, amount) = match money(&body["amount"]) {
            Ok(money) => money,
            Err(reply) => return reply,
        };
        let sequence = text("sequenceType").unwrap_or_else(|| "oneoff".to_owned());
        if let Some(refusal) = self.refusal(body, &sequence) {
            return refusal;
        }
        let recurring = sequence == "recurring";
        let held = HeldPayment {
            id: self.id("tr_"),
            created_at: self.time(),
            status: if recurring { "pending" } else { "open" },
            currency,
            amount,
            sequence,
            customer: text("customerId"),
            mandate: text("mandateId"),
            metadata: body["metadata"].clone(),
            description: text("description").unwrap_or_default(),
            redirect_url: text("redirectUrl"),
            webhook_url: text("webhookUrl"),
            paid_at: None,
            failure: None,
            cancelable: recurring,
            charged_back: Decimal::ZERO,
            refunds: Vec::new(),
        };
        let view = held.view(&self.base);
        self.payments.push(held);
        Reply::new(201, view)
    }

    fn refusal(&self, body: &Value, sequence: &str) -> Option<Reply> {
        let text = |name: &str| body[name].as_str().filter(|text| !text.is_empty());
        let refuse = |detail: &str, field: &str| Some(Reply::problem(422, detail, Some(field)));
        if text("description").is_none_or(|text| text.chars().count() > 255) {
            return refuse("The description is invalid", "description");
        }
        if text("webhookUrl").is_some_and(|url| !url.starts_with("http")) {
            return refuse("The webhook URL is invalid", "webhookUrl");
        }
        match sequence {
            "oneoff" | "first" if text("redirectUrl").is_none() => {
                return refuse("The redirect URL is required", "redirectUrl");
            }
            "oneoff" => return None,
            "first" | "recurring" => {}
            _ => return refuse("The sequence type is invalid", "sequenceType"),
        }
        let Some(customer) = text("customerId").filter(|id| self.has_customer(id)) else {
            return refuse("The customer id is invalid", "customerId");
        };
        let usable = self.mandates.iter().any(|held| {
            held.customer == customer
                && held.status != MandateStatus::Invalid
                && text("mandateId").is_none_or(|id| id == held.id)
        });
        if sequence == "recurring" && !usable {
            return refuse("No suitable mandates found for customer", "mandateId");
        }
        None
    }

    pub(super) fn cancel_payment(&mut self, id: &str) -> Reply {
        let base = self.base.clone();
        match self.payments.iter_mut().find(|held| held.id == id) {
            None => Reply::not_found("payment"),
            Some(held) if held.cancelable && held.is_open() => {
                held.status = "canceled";
                Reply::new(200, held.view(&base))
            }
            Some(_) => Reply::problem(422, "The payment cannot be cancelled", None),
        }
    }

    pub(super) fn create_refund(&mut self, id: &str, body: &Value) -> Reply {
        let Some(held) = self.payments.iter().find(|held| held.id == id) else {
            return Reply::not_found("payment");
        };
        let (currency, amount) = match money(&body["amount"]) {
            Ok(money) => money,
            Err(reply) => return reply,
        };
        let left = held.amount - held.refunded() - held.charged_back;
        if held.status != "paid" || currency != held.currency || amount > left {
            return Reply::problem(422, "The amount is higher than the maximum", Some("amount"));
        }
        self.refund(id, amount, body["metadata"].clone());
        let refund = self.payment_mut(id).refunds.last().map(|refund| refund.view(id, &currency));
        Reply::new(201, refund.unwrap_or_default())
    }
}

/// Parses an amount. An amount with more or fewer decimals than its currency is refused.
fn money(value: &Value) -> Result<(String, Decimal), Reply> {
    let given: Option<Money> = serde_json::from_value(value.clone()).ok();
    let exact = given.and_then(|given| {
        let amount = given.amount()?;
        (Money::new(amount, &given.currency)? == given).then_some((given.currency, amount))
    });
    exact.ok_or_else(|| Reply::problem(422, "The amount contains an invalid value", Some("amount")))
}

impl HeldPayment {
    /// The JSON that Mollie returns; fields that do not apply are omitted.
    pub(super) fn view(&self, base: &str) -> Value {
        let money = |amount| Money::new(amount, &self.currency);
        let mut view = json!({
            "resource": "payment",
            "id": self.id,
            "mode": "test",
            "createdAt": self.created_at,
            "status": self.status,
            "amount": money(self.amount),
            "description": self.description,
            "sequenceType": self.sequence,
            "redirectUrl": self.redirect_url,
            "webhookUrl": self.webhook_url,
            "metadata": self.metadata,
            "_links": { "self": { "href": format!("{base}/payments/{}", self.id) } },
        });
        if let Some(customer) = &self.customer {
            view["customerId"] = json!(customer);
        }
        if let Some(mandate) = &self.mandate {
            view["mandateId"] = json!(mandate);
        }
        if self.is_open() {
            view["isCancelable"] = json!(self.cancelable);
        }
        if self.status == "open" && self.sequence != "recurring" {
            view["_links"]["checkout"] =
                json!({ "href": format!("{base}/checkout/{}", self.id), "type": "text/html" });
        }
        if let Some(paid_at) = &self.paid_at {
            view["paidAt"] = json!(paid_at);
            view["amountRefunded"] = json!(money(self.refunded()));
        }
        if !self.charged_back.is_zero() {
            view["amountChargedBack"] = json!(money(self.charged_back));
        }
        if let Some(reason) = &self.failure {
            view["details"] = json!({ "bankReasonCode": "MS03", "bankReason": reason });
        }
        view
    }
}
