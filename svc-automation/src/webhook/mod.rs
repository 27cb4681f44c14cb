//! Webhooks: endpoints of integrations that are told of events, what they were told and what came of it.

mod deliver;
pub(crate) mod operations;
mod rpc;
mod rules;
mod store;

use chassis_base::time::timestamp;
use chassis_rpc::token::Identity;
use chrono::{DateTime, Utc};
use proto::automation::{WebhookDelivery, WebhookEndpoint, WebhookEndpointMeta, WebhookEndpointWithSecret};
use uuid::Uuid;

use crate::event::readers::Reader;
use crate::outside::Secret;

pub(crate) use deliver::{Deliverer, worker};
pub(crate) use rpc::Webhooks;
pub(crate) use store::purge;

/// What the audit log calls an endpoint; it never has its secrets.
pub(crate) const AUDITED: &str = "webhook_endpoint";

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
    /// Attempts in a row that had no answer in time.
    pub unanswered: i32,
    /// Until when it is left alone for that, with everything that it is still to be told.
    pub retry_at: Option<DateTime<Utc>>,
    pub disabled_reason: String,
    pub binding: Binding,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// Whose an endpoint is, and so what it may be told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Binding {
    /// The public id of the key; empty for none.
    pub key: String,
    /// What it may read at most. `None`: not known, or everything.
    pub scopes: Option<Vec<String>>,
    /// What the gateway told that the key may do. `None`: nothing was told, it has its scopes still.
    pub told: Option<Vec<String>>,
}

impl Binding {
    pub fn of_caller(caller: &Identity) -> Self {
        if caller.is_mesh() {
            return Self::default();
        }
        Self { key: caller.actor.clone(), scopes: Some(caller.scopes.clone()), told: None }
    }

    /// What it may read: what it was made with, as far as its key still has that.
    pub fn scopes(&self) -> Option<Vec<String>> {
        match (&self.scopes, &self.told) {
            (Some(made), Some(told)) => {
                Some(made.iter().filter(|scope| told.contains(scope)).cloned().collect())
            }
            (made, told) => made.clone().or_else(|| told.clone()),
        }
    }

    pub fn reader(&self) -> Reader {
        Reader::new(self.key.clone(), self.scopes())
    }

    /// The same for whoever leads an endpoint elsewhere: it gets nothing that they may not read.
    pub fn taken_over(&self, caller: &Identity) -> Self {
        if caller.is_mesh() || caller.actor == self.key {
            return self.clone();
        }
        let theirs = caller.scopes.clone();
        let scopes = match self.scopes() {
            Some(have) => theirs.into_iter().filter(|scope| have.contains(scope)).collect(),
            None => theirs,
        };
        Self { key: caller.actor.clone(), scopes: Some(scopes), told: None }
    }
}

impl Endpoint {
    /// The secrets that sign now.
    pub fn secrets(&self, now: DateTime<Utc>) -> Vec<Secret> {
        let old = self.old_secret.clone().filter(|_| self.old_secret_until.is_some_and(|until| until > now));
        std::iter::once(self.secret.clone()).chain(old).collect()
    }

    fn meta(&self) -> WebhookEndpointMeta {
        WebhookEndpointMeta {
            failing_since: self.failing_since.map(timestamp),
            disabled_reason: self.disabled_reason.clone(),
            old_secret_until: self.old_secret_until.map(timestamp),
        }
    }

    /// As everyone may see it, at any time.
    pub fn shown(&self) -> WebhookEndpoint {
        self.clone().into()
    }

    /// With the secret, which is shown only when it is new.
    pub fn with_secret(&self) -> WebhookEndpointWithSecret {
        WebhookEndpointWithSecret {
            id: self.id.to_string(),
            url: self.url.clone(),
            description: self.description.clone(),
            types: self.types.clone(),
            active: self.active,
            notify_email: self.notify_email.clone(),
            created_at: Some(timestamp(self.created_at)),
            updated_at: Some(timestamp(self.updated_at)),
            meta: Some(self.meta()),
            secret: self.secret.text(),
        }
    }
}

impl From<Endpoint> for WebhookEndpoint {
    fn from(endpoint: Endpoint) -> Self {
        let meta = endpoint.meta();
        Self {
            id: endpoint.id.to_string(),
            url: endpoint.url,
            description: endpoint.description,
            types: endpoint.types,
            active: endpoint.active,
            notify_email: endpoint.notify_email,
            created_at: Some(timestamp(endpoint.created_at)),
            updated_at: Some(timestamp(endpoint.updated_at)),
            meta: Some(meta),
        }
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
    pub status: String,
    pub attempts: i32,
    pub response_status: Option<i32>,
    pub error: String,
    pub next_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub delivered_at: Option<DateTime<Utc>>,
}

impl From<Delivery> for WebhookDelivery {
    fn from(delivery: Delivery) -> Self {
        Self {
            id: delivery.id.to_string(),
            endpoint_id: delivery.endpoint_id.to_string(),
            event_id: delivery.event_id.map(|id| id.to_string()).unwrap_or_default(),
            r#type: delivery.kind,
            status: delivery.status,
            attempts: delivery.attempts,
            response_status: delivery.response_status,
            error: delivery.error,
            created_at: Some(timestamp(delivery.created_at)),
            next_attempt_at: delivery.next_at.map(timestamp),
            delivered_at: delivery.delivered_at.map(timestamp),
        }
    }
}
