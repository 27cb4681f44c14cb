//! Pipelines and their phases: the phases that a deal goes through until it is won or lost. Short lists that are read
//! whole.

mod operations;
pub(crate) mod rpc;
mod rules;
pub(crate) mod store;

use uuid::Uuid;

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
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    pub id: Uuid,
    pub name: String,
    pub order: i32,
}

/// A phase and the pipeline that it is part of.
struct FoundPhase {
    pipeline: Pipeline,
    phase: Phase,
}

impl From<Pipeline> for proto::crm::Pipeline {
    fn from(pipeline: Pipeline) -> Self {
        let Pipeline { id, name, active, phases } = pipeline;
        let phases = phases.into_iter().map(|Phase { id, name, order }| proto::crm::PipelinePhase {
            id: id.to_string(),
            name,
            order,
        });
        Self { id: id.to_string(), name, active, phases: phases.collect() }
    }
}

impl Phase {
    /// The message of a phase outside its pipeline, which names the pipeline.
    fn into_message(self, pipeline_id: Uuid) -> proto::crm::Phase {
        proto::crm::Phase {
            id: self.id.to_string(),
            pipeline_id: pipeline_id.to_string(),
            name: self.name,
            order: self.order,
        }
    }
}

impl From<FoundPhase> for proto::crm::Phase {
    fn from(found: FoundPhase) -> Self {
        found.phase.into_message(found.pipeline.id)
    }
}

impl Pipeline {
    /// The messages of all phases.
    fn into_phase_messages(self) -> impl Iterator<Item = proto::crm::Phase> {
        let pipeline_id = self.id;
        self.phases.into_iter().map(move |phase| phase.into_message(pipeline_id))
    }
}
