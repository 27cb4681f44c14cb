//! Pipelines and their phases: the ways that deals go. Small lists that are read whole.

pub mod rpc;
pub mod store;

use uuid::Uuid;

/// Most pipelines of an account, and most phases of a pipeline.
const MOST: usize = 50;

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

/// The phases of a pipeline, each with its pipeline.
fn phases_of(pipeline: Pipeline) -> impl Iterator<Item = proto::crm::Phase> {
    let pipeline_id = pipeline.id.to_string();
    let phase = move |Phase { id, name, order }| proto::crm::Phase {
        id: id.to_string(),
        pipeline_id: pipeline_id.clone(),
        name,
        order,
    };
    pipeline.phases.into_iter().map(phase)
}
