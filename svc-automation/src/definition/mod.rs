//! Definitions of flows: the language that authors write them in, and the versions that are stored of them. Owns the way
//! from the text of an author to the graph of steps that a run takes. Below both `flow`, which manages definitions, and
//! `run`, which executes them.
//!
//! `model` is the published document, `kind` what its parts are to the code, `read` and `check` turn a text into a valid
//! definition, `graph` orders the steps, `methods` and `schedule` are the rpcs and cron lines that a definition names, and
//! `arguments` what the rpcs take.

mod arguments;
pub(crate) mod check;
pub(crate) mod graph;
mod kind;
pub(crate) mod methods;
pub(crate) mod model;
pub(crate) mod read;
pub(crate) mod schedule;
pub(crate) mod store;

use uuid::Uuid;

pub(crate) use kind::{Kind, StepKind, TriggerType};
pub(crate) use model::Definition;

/// The current version of a flow: what a new run is made from.
#[derive(Clone, Debug)]
pub(crate) struct FlowRef {
    pub id: Uuid,
    pub version: i64,
    pub name: String,
    pub trigger_type: TriggerType,
    pub trigger_key: String,
}

/// The content of a version of a flow, as it is stored.
#[derive(chassis_derive::FromRow)]
pub(crate) struct Version {
    /// The text of its author.
    pub source: String,
    /// The definition as JSON.
    pub definition: String,
    /// The scopes that its steps act with.
    pub scopes: Vec<String>,
}

impl Version {
    /// `None` when the stored text is not a definition that this release can read.
    pub(crate) fn parse(&self) -> Option<Definition> {
        serde_json::from_str(&self.definition).ok()
    }
}
