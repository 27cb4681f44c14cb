//! Records as the messages of the contract. Apart from `mod.rs`, which would be too long with them.

use chassis_base::time::timestamp;
use proto::automation::{WebhookDelivery, WebhookEndpoint, WebhookEndpointMeta, WebhookEndpointWithSecret};

use super::{Delivery, Endpoint};

/// With the secret, for the responses that show a new one.
impl From<Endpoint> for WebhookEndpointWithSecret {
    fn from(endpoint: Endpoint) -> Self {
        let secret = endpoint.secret.text();
        let endpoint = WebhookEndpoint::from(endpoint);
        Self {
            id: endpoint.id,
            url: endpoint.url,
            description: endpoint.description,
            types: endpoint.types,
            active: endpoint.active,
            notify_email: endpoint.notify_email,
            created_at: endpoint.created_at,
            updated_at: endpoint.updated_at,
            meta: endpoint.meta,
            secret,
        }
    }
}

impl From<Endpoint> for WebhookEndpoint {
    fn from(endpoint: Endpoint) -> Self {
        let meta = WebhookEndpointMeta {
            failing_since: endpoint.failing_since.map(timestamp),
            disabled_reason: endpoint.disabled_reason,
            old_secret_until: endpoint.old_secret_until.map(timestamp),
            version: endpoint.version,
            updated_at: Some(timestamp(endpoint.updated_at)),
        };
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

impl From<Delivery> for WebhookDelivery {
    fn from(delivery: Delivery) -> Self {
        Self {
            id: delivery.id.to_string(),
            endpoint_id: delivery.endpoint_id.to_string(),
            event_id: delivery.event_id.map(|id| id.to_string()).unwrap_or_default(),
            r#type: delivery.kind,
            status: delivery.status.name().to_owned(),
            attempts: delivery.attempts,
            response_status: delivery.response_status,
            error: delivery.error,
            created_at: Some(timestamp(delivery.created_at)),
            next_attempt_at: delivery.next_at.map(timestamp),
            delivered_at: delivery.delivered_at.map(timestamp),
            updated_at: Some(timestamp(delivery.updated_at)),
        }
    }
}
