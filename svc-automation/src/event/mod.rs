//! Events as they are stored: one row for each event of a service or an integration, for 30 days. Owns their form and who
//! may read them. How they come in, and what they start, is in `ingest`.

pub(crate) mod access;
pub(crate) mod operations;
mod rpc;
pub(crate) mod rules;
pub(crate) mod store;

use chassis_base::time::timestamp;
use chrono::{DateTime, SecondsFormat, Utc};
use proto::automation::RecordedEvent;
use serde_json::{Value, json};
use uuid::Uuid;

pub(crate) use access::ReadAccess;
pub(crate) use rpc::Events;

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
    /// The key that fired it; empty for an event of a service.
    pub actor: String,
}

impl Event {
    /// The JSON form that steps of flows and webhook endpoints get.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "type": self.kind,
            "entity_type": self.entity_type,
            "entity_id": self.entity_id,
            "occurred_at": rfc3339(self.occurred_at),
            // `data` was checked when the event came in.
            "data": serde_json::from_str::<Value>(&self.data).unwrap_or_else(|_| json!({})),
        })
    }
}

/// An event as lists show it.
pub(crate) struct Record {
    pub id: Uuid,
    pub kind: String,
    pub entity_type: String,
    pub entity_id: String,
    pub data: String,
    pub occurred_at: DateTime<Utc>,
    pub received_at: DateTime<Utc>,
}

impl From<Record> for RecordedEvent {
    fn from(record: Record) -> Self {
        Self {
            id: record.id.to_string(),
            r#type: record.kind,
            entity_type: record.entity_type,
            entity_id: record.entity_id,
            data: record.data,
            occurred_at: Some(timestamp(record.occurred_at)),
            created_at: Some(timestamp(record.received_at)),
        }
    }
}

/// The format of times in every JSON that this service makes.
pub(crate) fn rfc3339(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}
