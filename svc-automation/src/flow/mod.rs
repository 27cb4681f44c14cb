//! Flows: what happens by itself. Owns their definitions, from the text of an author to the steps that a run takes.

pub(crate) mod calls;
pub(crate) mod check;
pub(crate) mod cli;
pub(crate) mod definition;
pub(crate) mod dry;
pub(crate) mod graph;
pub(crate) mod operations;
pub(crate) mod read;
pub(crate) mod ready;
mod rpc;
pub(crate) mod schedule;
pub(crate) mod store;

use chassis_base::time::timestamp;
use chrono::{DateTime, Utc};
use proto::automation::{Flow, FlowMeta, TriggerType};
use uuid::Uuid;

pub(crate) use rpc::Flows;

/// What the audit log calls a flow.
pub(crate) const AUDITED: &str = "flow";

/// A flow as it is stored, without its definition.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub id: Uuid,
    pub name: String,
    pub description: String,
    pub category: String,
    pub trigger_type: String,
    pub trigger_key: String,
    pub active: bool,
    pub step_count: i32,
    pub version: i64,
    pub ready_made: String,
    pub next_start_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl From<Record> for Flow {
    fn from(record: Record) -> Self {
        let meta = FlowMeta { version: record.version, next_start_at: record.next_start_at.map(timestamp) };
        Self {
            id: record.id.to_string(),
            name: record.name,
            description: record.description,
            category: record.category,
            trigger_type: trigger_type(&record.trigger_type).into(),
            trigger_key: record.trigger_key,
            active: record.active,
            step_count: record.step_count,
            created_at: Some(timestamp(record.created_at)),
            updated_at: Some(timestamp(record.updated_at)),
            meta: Some(meta),
        }
    }
}

const TYPES: [(TriggerType, &str); 4] = [
    (TriggerType::Event, "event"),
    (TriggerType::Custom, "custom"),
    (TriggerType::Schedule, "schedule"),
    (TriggerType::Manual, "manual"),
];

/// A trigger's type as it is stored; `None` when none was named.
pub(crate) fn type_name(kind: TriggerType) -> Option<&'static str> {
    TYPES.iter().find(|(known, _)| *known == kind).map(|(_, name)| *name)
}

/// The opposite of [`type_name`].
pub(crate) fn trigger_type(name: &str) -> TriggerType {
    TYPES.iter().find(|(_, known)| *known == name).map_or(TriggerType::Unspecified, |(kind, _)| *kind)
}
