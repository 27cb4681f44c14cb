//! Flows: automations of an account, each with a trigger and versions of its definition. Owns which flows there are and
//! which are active; the language of definitions is in `definition`, their execution in `run`.
//!
//! Files beyond the usual ones: `command_line` for operators, `dry_run` for tests of definitions, `provision` for the
//! flows that every account starts with.

pub(crate) mod command_line;
mod dry_run;
pub(crate) mod operations;
pub(crate) mod provision;
mod rehearser;
mod rpc;
mod store;
pub(crate) mod worker;

use chassis_base::time::timestamp;
use chrono::{DateTime, Utc};
use proto::automation::{Flow, FlowMeta};
use uuid::Uuid;

use crate::definition::{FlowRef, TriggerType};

pub(crate) use rpc::Flows;

/// The name of a flow in the log.
const AUDITED: &str = "flow";

/// A flow as it is stored, without its definition.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub id: Uuid,
    pub name: String,
    pub description: String,
    pub category: String,
    pub trigger_type: TriggerType,
    pub trigger_key: String,
    pub active: bool,
    pub step_count: i32,
    /// Counts all changes, those of the definition among them.
    pub version: i64,
    /// Which of the flows of `provision` it was made from; empty for none.
    pub ready_made: String,
    /// When an active scheduled flow starts next.
    pub next_start_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl From<Record> for Flow {
    fn from(record: Record) -> Self {
        let meta = FlowMeta {
            version: record.version,
            next_start_at: record.next_start_at.map(timestamp),
            updated_at: Some(timestamp(record.updated_at)),
        };
        Self {
            id: record.id.to_string(),
            name: record.name,
            description: record.description,
            category: record.category,
            trigger_type: proto::automation::TriggerType::from(record.trigger_type).into(),
            trigger_key: record.trigger_key,
            active: record.active,
            step_count: record.step_count,
            created_at: Some(timestamp(record.created_at)),
            updated_at: Some(timestamp(record.updated_at)),
            meta: Some(meta),
        }
    }
}

/// The part of a flow that a new run is made from.
impl From<&Record> for FlowRef {
    fn from(record: &Record) -> Self {
        Self {
            id: record.id,
            version: record.version,
            name: record.name.clone(),
            trigger_type: record.trigger_type,
            trigger_key: record.trigger_key.clone(),
        }
    }
}
