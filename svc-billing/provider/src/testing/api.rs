//! The stand-in's endpoints: which request does what, idempotency keys, and lists in pages.

use http::Method;
use serde_json::{Value, json};

use super::reply::Reply;
use super::state::{FirstUse, HeldMandate, HeldRefund, State};
use crate::mollie::Money;

/// A request as it was received.
pub(super) struct Call {
    pub method: Method,
    pub path: String,
    pub query: String,
    pub key: Option<String>,
    /// `null` if it is absent or not JSON.
    pub body: Value,
}

impl Call {
    fn parameter(&self, name: &str) -> Option<&str> {
        let mut pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(given, _)| *given == name).map(|(_, value)| value)
    }
}

impl State {
    /// A request whose key was used before is not carried out again.
    pub(super) fn answer(&mut self, call: &Call) -> Reply {
        let Some(key) = call.key.as_ref().filter(|_| call.method != Method::GET) else {
            return self.execute(call);
        };
        let request = format!("{} {} {}", call.method, call.path, call.body);
        match self.keys.get(key) {
            Some(first) if first.request == request => first.reply.clone(),
            Some(_) => Reply::problem(400, "The idempotency key was used for another request.", None),
            None => {
                let reply = self.execute(call);
                self.keys.insert(key.clone(), FirstUse { request, reply: reply.clone() });
                reply
            }
        }
    }

    fn execute(&mut self, call: &Call) -> Reply {
        let path: Vec<&str> = call.path.split('/').skip(1).collect();
        match (call.method.as_str(), path.as_slice()) {
            ("POST", ["v2", "customers"]) => self.create_customer(&call.body),
            ("GET", ["v2", "customers", customer, "mandates"]) => self.list_mandates(call, customer),
            ("POST", ["v2", "payments"]) => self.create_payment(&call.body),
            ("GET", ["v2", "payments"]) => self.list_payments(call),
            ("GET", ["v2", "payments", id]) => {
                self.get_payment(id, call.parameter("embed") == Some("refunds"))
            }
            ("DELETE", ["v2", "payments", id]) => self.cancel_payment(id),
            ("POST", ["v2", "payments", id, "refunds"]) => self.create_refund(id, &call.body),
            _ => Reply::problem(404, "There is nothing here.", None),
        }
    }

    fn create_customer(&mut self, body: &Value) -> Reply {
        let id = self.id("cst_");
        let customer = json!({
            "resource": "customer",
            "id": id,
            "mode": "test",
            "name": body["name"],
            "email": body["email"],
            "metadata": body["metadata"],
            "createdAt": self.time(),
        });
        self.customers.push((id, customer.clone()));
        Reply::new(201, customer)
    }

    fn list_mandates(&self, call: &Call, customer: &str) -> Reply {
        if !self.has_customer(customer) {
            return Reply::not_found("customer");
        }
        let of_customer = self.mandates.iter().rev().filter(|held| held.customer == customer);
        self.list(call, "mandates", of_customer.map(HeldMandate::view).collect())
    }

    fn list_payments(&self, call: &Call) -> Reply {
        self.list(call, "payments", self.payments.iter().rev().map(|held| held.view(&self.base)).collect())
    }

    fn get_payment(&self, id: &str, with_refunds: bool) -> Reply {
        let Some(held) = self.payments.iter().find(|held| held.id == id) else {
            return Reply::not_found("payment");
        };
        let mut view = held.view(&self.base);
        if with_refunds {
            let refunds = held.refunds.iter().map(|refund| refund.view(&held.id, &held.currency));
            view["_embedded"] = json!({ "refunds": refunds.collect::<Vec<_>>() });
        }
        Reply::new(200, view)
    }

    pub(super) fn has_customer(&self, id: &str) -> bool {
        self.customers.iter().any(|(known, _)| known == id)
    }

    /// Newest first; a page begins with the entry that its cursor names.
    fn list(&self, call: &Call, name: &str, entries: Vec<Value>) -> Reply {
        let limit = call.parameter("limit").map_or(Ok(50), str::parse::<usize>);
        let Some(limit) = limit.ok().filter(|limit| (1..=250).contains(limit)) else {
            return Reply::problem(400, "The limit is not valid.", Some("limit"));
        };
        let limit = limit.min(self.page_size);
        let start = match call.parameter("from") {
            None => Some(0),
            Some(from) => entries.iter().position(|entry| entry["id"] == from),
        };
        let Some(start) = start else { return Reply::problem(400, "The cursor is not valid.", Some("from")) };
        let next = entries.get(start + limit).map(|entry| {
            let from = entry["id"].as_str().unwrap_or_default();
            let href = format!("{}{}?from={from}&limit={limit}", self.base, &call.path["/v2".len()..]);
            json!({ "href": href, "type": "application/hal+json" })
        });
        let page: Vec<Value> = entries.into_iter().skip(start).take(limit).collect();
        let links = json!({ "previous": null, "next": next });
        Reply::new(200, json!({ "count": page.len(), "_embedded": { name: page }, "_links": links }))
    }
}

impl HeldMandate {
    fn view(&self) -> Value {
        json!({
            "resource": "mandate",
            "id": self.id,
            "mode": "test",
            "status": self.status.name(),
            "method": "directdebit",
            "customerId": self.customer,
            "createdAt": self.created_at,
        })
    }
}

impl HeldRefund {
    pub(super) fn view(&self, payment: &str, currency: &str) -> Value {
        json!({
            "resource": "refund",
            "id": self.id,
            "mode": "test",
            "amount": Money::new(self.amount, currency),
            "status": "pending",
            "paymentId": payment,
            "metadata": self.metadata,
            "createdAt": self.created_at,
        })
    }
}
