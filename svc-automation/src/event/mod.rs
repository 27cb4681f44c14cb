//! Events: taken in from other services and from integrations, kept once each, and handed on in the same transaction to
//! the flows and endpoints that wait for them.

pub(crate) mod operations;
pub(crate) mod readers;
mod rpc;
mod rpc_list;
pub(crate) mod rules;
pub(crate) mod store;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

pub(crate) use rpc::Rpc;
pub(crate) use rpc_list::Events;

/// An event as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub id: Uuid,
    pub kind: String,
    pub entity_type: String,
    pub entity_id: String,
    /// None when an integration fired it.
    pub sequence: Option<i64>,
    /// JSON text of an object.
    pub data: String,
    pub occurred_at: DateTime<Utc>,
    /// How many runs in a row led to it.
    pub depth: u32,
    /// The key that fired it; empty for one of a service.
    pub actor: String,
}

impl Event {
    /// As steps and endpoints see it.
    pub fn shown(&self) -> Value {
        json!({
            "id": self.id,
            "type": self.kind,
            "entity_type": self.entity_type,
            "entity_id": self.entity_id,
            "occurred_at": rfc3339(self.occurred_at),
            // Checked when it came in.
            "data": serde_json::from_str::<Value>(&self.data).unwrap_or_else(|_| json!({})),
        })
    }
}

/// A time as every answer writes it.
pub(crate) fn rfc3339(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}
