//! Webhooks: endpoints of integrations, the deliveries of events to them, and the secrets that sign requests.
//!
//! `message` turns records into messages, so that this file stays short.
//! `sender` makes one attempt of a delivery; a file of its own because both the worker and the rpc that tests an endpoint
//! use it.

mod message;
pub(crate) mod operations;
mod rpc;
mod rules;
mod sender;
mod store;
pub(crate) mod worker;

use chassis_rpc::token::Identity;
use chrono::{DateTime, Utc};
use proto::automation::WebhookDeliveryStatus;
use uuid::Uuid;

use crate::egress::Secret;
use crate::event::ReadAccess;

pub(crate) use rpc::Webhooks;
pub(crate) use sender::Sender;

/// The name of an endpoint in the log, which never gets its secrets.
const AUDITED: &str = "webhook_endpoint";

/// An endpoint as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub id: Uuid,
    pub url: String,
    pub description: String,
    /// Empty: all events.
    pub types: Vec<String>,
    pub active: bool,
    pub notify_email: String,
    pub secret: Secret,
    pub old_secret: Option<Secret>,
    pub old_secret_until: Option<DateTime<Utc>>,
    pub failing_since: Option<DateTime<Utc>>,
    /// Attempts in a row without a response in time.
    pub unanswered: i32,
    /// Backoff: no delivery of the endpoint is attempted before.
    pub retry_at: Option<DateTime<Utc>>,
    pub disabled_reason: String,
    pub binding: Binding,
    /// Counts the changes of what the endpoint shows.
    pub version: i64,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// The key that an endpoint belongs to, which decides what events it gets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Binding {
    /// The public id of the key; empty for none.
    pub key: String,
    /// The scopes of whoever created the endpoint: what it may read at most. `None`: not known, or everything.
    pub scopes: Option<Vec<String>>,
    /// The scopes that the key has now, as the gateway reported. `None`: no report, so the key still has all of them.
    pub reported: Option<Vec<String>>,
}

impl Binding {
    pub(crate) fn of_caller(caller: &Identity) -> Self {
        if caller.is_mesh() {
            return Self::default();
        }
        Self { key: caller.actor.clone(), scopes: Some(caller.scopes.clone()), reported: None }
    }

    /// What the endpoint may read: the scopes that it was created with, as far as its key still has them.
    pub(crate) fn scopes(&self) -> Option<Vec<String>> {
        match (&self.scopes, &self.reported) {
            (Some(created), Some(reported)) => {
                Some(created.iter().filter(|scope| reported.contains(scope)).cloned().collect())
            }
            (created, reported) => created.clone().or_else(|| reported.clone()),
        }
    }

    pub(crate) fn access(&self) -> ReadAccess {
        ReadAccess::new(self.key.clone(), self.scopes())
    }

    /// The binding after a caller has changed the address of the endpoint: it gets nothing that the caller may not read,
    /// or a key could have events sent to itself that it has no scope for.
    pub(crate) fn taken_over(&self, caller: &Identity) -> Self {
        if caller.is_mesh() || caller.actor == self.key {
            return self.clone();
        }
        let callers = caller.scopes.clone();
        let scopes = match self.scopes() {
            Some(own) => callers.into_iter().filter(|scope| own.contains(scope)).collect(),
            None => callers,
        };
        Self { key: caller.actor.clone(), scopes: Some(scopes), reported: None }
    }
}

impl Endpoint {
    /// An active endpoint with a new secret and no other values.
    pub(crate) fn new(id: Uuid, now: DateTime<Utc>) -> Self {
        Self {
            id,
            url: String::new(),
            description: String::new(),
            types: Vec::new(),
            active: true,
            notify_email: String::new(),
            secret: Secret::random(),
            old_secret: None,
            old_secret_until: None,
            failing_since: None,
            unanswered: 0,
            retry_at: None,
            disabled_reason: String::new(),
            binding: Binding::default(),
            version: 1,
            created_at: now,
            updated_at: now,
        }
    }

    /// The secrets that sign at this time.
    pub(crate) fn secrets(&self, now: DateTime<Utc>) -> Vec<Secret> {
        let old = self.old_secret.clone().filter(|_| self.old_secret_until.is_some_and(|until| until > now));
        std::iter::once(self.secret.clone()).chain(old).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryStatus {
    Pending,
    Delivered,
    Failed,
}

impl DeliveryStatus {
    const ALL: [Self; 3] = [Self::Pending, Self::Delivered, Self::Failed];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }

    /// `None` for no status.
    fn from_message(status: WebhookDeliveryStatus) -> Option<Self> {
        match status {
            WebhookDeliveryStatus::Unspecified => None,
            WebhookDeliveryStatus::Pending => Some(Self::Pending),
            WebhookDeliveryStatus::Delivered => Some(Self::Delivered),
            WebhookDeliveryStatus::Failed => Some(Self::Failed),
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

/// One event for one endpoint, as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub id: Uuid,
    pub endpoint_id: Uuid,
    pub event_id: Option<Uuid>,
    pub kind: String,
    /// The body, the same at every attempt.
    pub payload: String,
    pub status: DeliveryStatus,
    pub attempts: i32,
    pub response_status: Option<i32>,
    pub error: String,
    pub next_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub delivered_at: Option<DateTime<Utc>>,
    pub updated_at: DateTime<Utc>,
}

/// What a delivery carries.
pub(crate) struct Content<'a> {
    pub event_id: Option<Uuid>,
    pub kind: &'a str,
    pub payload: String,
}

impl Delivery {
    /// A delivery that is due now.
    pub(crate) fn new(id: Uuid, endpoint_id: Uuid, content: Content<'_>, now: DateTime<Utc>) -> Self {
        Self {
            id,
            endpoint_id,
            event_id: content.event_id,
            kind: content.kind.to_owned(),
            payload: content.payload,
            status: DeliveryStatus::Pending,
            attempts: 0,
            response_status: None,
            error: String::new(),
            next_at: Some(now),
            created_at: now,
            delivered_at: None,
            updated_at: now,
        }
    }
}

/// The secrets of the account's own requests, those of `http` steps.
#[derive(chassis_derive::FromRow)]
pub(crate) struct SigningSecrets {
    pub secret: Vec<u8>,
    pub old_secret: Option<Vec<u8>>,
    pub old_secret_until: Option<DateTime<Utc>>,
}

impl SigningSecrets {
    /// Those that sign at this time.
    pub(crate) fn in_use(self, now: DateTime<Utc>) -> Vec<Secret> {
        let is_overlap = self.old_secret_until.is_some_and(|until| until > now);
        let old = self.old_secret.filter(|_| is_overlap);
        std::iter::once(self.secret).chain(old).map(Secret::from_bytes).collect()
    }
}
