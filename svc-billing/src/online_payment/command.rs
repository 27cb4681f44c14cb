//! Commands to a provider. A file of its own, because the queue of commands is a second record of this folder.

use chrono::{DateTime, TimeDelta, Utc};
use rust_decimal::Decimal;
use uuid::Uuid;

/// After this time the worker takes over a command that another process was to execute. A command that is executed
/// right after the commit is queued with this delay; should the process be killed before that, the worker finds the
/// command.
pub(crate) const TAKEOVER_DELAY: TimeDelta = TimeDelta::seconds(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandKind {
    /// Create a client as a customer of the provider.
    CreateCustomer,
    CreatePayment,
    CancelPayment,
    RefundPayment,
    /// Fetch the state of a payment.
    RefreshPayment,
}

impl CommandKind {
    const NAMES: [(Self, &'static str); 5] = [
        (Self::CreateCustomer, "customer"),
        (Self::CreatePayment, "payment"),
        (Self::CancelPayment, "cancel"),
        (Self::RefundPayment, "refund"),
        (Self::RefreshPayment, "ask"),
    ];

    /// The name in the database.
    pub(crate) fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(_, known)| *known == name).map(|(kind, _)| kind)
    }
}

/// A command in the queue. There is at most one of a kind for each subject.
#[derive(Clone, Debug)]
pub(crate) struct ProviderCommand {
    /// The idempotency key of the request to the provider.
    pub id: Uuid,
    pub kind: CommandKind,
    /// The client for `CreateCustomer`, otherwise the online payment.
    pub subject: Uuid,
    /// The amount of a refund.
    pub amount: Decimal,
    /// The number of attempts, including the current one.
    pub attempts: i32,
    pub created_at: DateTime<Utc>,
}

impl ProviderCommand {
    /// A refresh that is executed directly, without being queued.
    pub(crate) fn refresh(id: Uuid, payment: Uuid, now: DateTime<Utc>) -> Self {
        let kind = CommandKind::RefreshPayment;
        Self { id, kind, subject: payment, amount: Decimal::ZERO, attempts: 1, created_at: now }
    }

    pub(crate) fn idempotency_key(&self) -> provider::IdempotencyKey {
        provider::IdempotencyKey(self.id.to_string())
    }
}

/// A command that is to be queued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewCommand<'a> {
    pub kind: CommandKind,
    pub subject: Uuid,
    pub provider: &'a str,
    /// The amount of a refund, otherwise zero.
    pub amount: Decimal,
    /// The time after which the worker executes it.
    pub delay: TimeDelta,
}
