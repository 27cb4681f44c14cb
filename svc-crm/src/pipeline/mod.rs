//! Pipelines and their phases: the phases that a deal goes through until it is won or lost. Short lists that are read
//! whole.

pub(crate) mod operations;
pub(crate) mod rpc;
mod rules;
pub(crate) mod store;

use chassis_base::time::timestamp;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::ordering::Entry;

/// How many pipelines an account can have.
const MAX_PIPELINES: usize = 50;
/// How many phases a pipeline can have.
const MAX_PHASES: usize = 50;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    pub id: Uuid,
    pub name: String,
    pub active: bool,
    /// In their order; never empty.
    pub phases: Vec<Phase>,
    /// Grows by one with every change of the pipeline or of a phase of it.
    pub version: i64,
    pub updated_at: DateTime<Utc>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    pub id: Uuid,
    pub name: String,
    pub order: i32,
    /// Grows by one with every change.
    pub version: i64,
    pub updated_at: DateTime<Utc>,
}

/// A phase and the pipeline that it is part of.
struct FoundPhase {
    pipeline: Pipeline,
    phase: Phase,
}

impl From<Pipeline> for proto::crm::Pipeline {
    fn from(pipeline: Pipeline) -> Self {
        let Pipeline { id, name, active, phases, version, updated_at } = pipeline;
        let phases = phases.into_iter().map(|Phase { id, name, order, .. }| proto::crm::PipelinePhase {
            id: id.to_string(),
            name,
            order,
        });
        Self {
            id: id.to_string(),
            name,
            active,
            phases: phases.collect(),
            version,
            updated_at: Some(timestamp(updated_at)),
        }
    }
}

impl Entry for Phase {
    fn order(&self) -> i32 {
        self.order
    }

    fn move_to(&mut self, order: i32, now: DateTime<Utc>) {
        self.order = order;
        self.count_change(now);
    }
}

impl Phase {
    fn new(id: Uuid, name: &str, order: i32, now: DateTime<Utc>) -> Self {
        Self { id, name: name.to_owned(), order, version: 1, updated_at: now }
    }

    fn count_change(&mut self, now: DateTime<Utc>) {
        self.version += 1;
        self.updated_at = now;
    }

    /// The message of a phase outside its pipeline, which names the pipeline.
    fn into_message(self, pipeline_id: Uuid) -> proto::crm::Phase {
        proto::crm::Phase {
            id: self.id.to_string(),
            pipeline_id: pipeline_id.to_string(),
            name: self.name,
            order: self.order,
            version: self.version,
            updated_at: Some(timestamp(self.updated_at)),
        }
    }
}

impl From<FoundPhase> for proto::crm::Phase {
    fn from(found: FoundPhase) -> Self {
        found.phase.into_message(found.pipeline.id)
    }
}

impl Pipeline {
    fn count_change(&mut self, now: DateTime<Utc>) {
        self.version += 1;
        self.updated_at = now;
    }

    /// The messages of all phases.
    fn into_phase_messages(self) -> impl Iterator<Item = proto::crm::Phase> {
        let pipeline_id = self.id;
        self.phases.into_iter().map(move |phase| phase.into_message(pipeline_id))
    }
}
