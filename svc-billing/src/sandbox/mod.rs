//! The embedded payment provider: it does everything that a real one does, without money. Its customers, mandates and
//! payments are stored beside billing's own rows, but billing reaches them only through the interface of providers,
//! and learns of changes as from a real provider: by webhooks for payments, and not at all for mandates.
//!
//! A payment that needs a payer is made, refused or left to expire on its page. A collection is paid by the worker,
//! unless the page of its mandate was used to have the next one refused. The page of a paid payment can charge it
//! back or refund it.

mod adapter;
mod operations;
mod page;
pub(crate) mod rpc;
mod rules;
mod settings;
mod store;
mod webhook;
mod worker;

use chassis_base::AccountId;
use chassis_rpc::Link;
use chrono::{DateTime, Utc};
use provider::{MandateStatus, Status};
use rust_decimal::Decimal;
use uuid::Uuid;

pub(crate) use adapter::Sandbox;
pub(crate) use settings::Settings;
pub(crate) use worker::worker;

#[cfg(test)]
mod lost_answer_tests;

pub(crate) const NAME: &str = "sandbox";

/// The id that billing gets. It contains the account, because billing looks up the ids of a provider without one.
fn external_id(account: AccountId, id: Uuid) -> String {
    Link { account, secret: *id.as_bytes() }.encode()
}

/// The inverse of [`external_id`].
fn parse_external_id(text: &str) -> Option<(AccountId, Uuid)> {
    Link::parse(text).map(|link| (link.account, Uuid::from_bytes(link.secret)))
}

/// The role of a payment in direct debit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sequence {
    OneOff,
    First,
    Recurring,
}

impl Sequence {
    const NAMES: [(Self, &'static str); 3] =
        [(Self::OneOff, "one_off"), (Self::First, "first"), (Self::Recurring, "recurring")];

    /// The name in the database and in stored requests.
    fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|(sequence, _)| *sequence == self).map_or("", |(_, name)| name)
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(_, known)| *known == name).map(|(sequence, _)| sequence)
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Payment {
    id: Uuid,
    reference: String,
    sequence: Sequence,
    customer_id: Option<Uuid>,
    mandate_id: Option<Uuid>,
    amount: Decimal,
    currency: String,
    description: String,
    return_url: String,
    webhook_url: String,
    status: Status,
    refunded: Decimal,
    charged_back: Decimal,
    failure: String,
    paid_at: Option<DateTime<Utc>>,
    /// Whether a pending collection is going to fail.
    fails: bool,
    created_at: DateTime<Utc>,
}

impl Payment {
    /// The amount that was not returned to the payer.
    fn remaining(&self) -> Decimal {
        self.amount - self.refunded - self.charged_back
    }

    /// The payment as billing gets it. `base` is the public URL of the gateway.
    fn into_answer(self, account: AccountId, base: &str) -> provider::Payment {
        let id = external_id(account, self.id);
        let checkout_url =
            matches!(self.status, Status::Open).then(|| format!("{base}/sandbox/checkouts/{id}"));
        provider::Payment {
            id,
            reference: self.reference,
            status: self.status,
            amount: self.amount,
            refunded: self.refunded,
            charged_back: self.charged_back,
            customer: self.customer_id.map(|id| external_id(account, id)),
            mandate: self.mandate_id.map(|id| external_id(account, id)),
            checkout_url,
            paid_at: self.paid_at,
            failure: Some(self.failure).filter(|text| !text.is_empty()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Mandate {
    id: Uuid,
    status: MandateStatus,
    /// Whether the next collection is going to fail.
    refuses_next: bool,
}

impl Mandate {
    /// The mandate as billing gets it.
    fn into_answer(self, account: AccountId) -> provider::Mandate {
        provider::Mandate { id: external_id(account, self.id), status: self.status }
    }
}
