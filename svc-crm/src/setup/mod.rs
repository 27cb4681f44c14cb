//! The setup of an account: the pipeline, phases and sources that it starts with, and the lock that every change of
//! pipelines and sources takes.
//!
//! Pipelines and sources call this folder and not the other way round: an account that was never provisioned gets its
//! defaults with the first change, before anything of the change itself is read. That is why the defaults are written
//! here and not by the operations of pipelines and sources.

pub(crate) mod operations;
mod store;

use chassis_base::time::timestamp;
use chrono::{DateTime, Utc};
use proto::crm::{DealSource, Phase, Pipeline, PipelinePhase};
use uuid::Uuid;

/// The names of what a new account has, in the language of its country.
struct Defaults {
    pipeline: &'static str,
    phases: [&'static str; 4],
    sources: [&'static str; 5],
}

const DUTCH: Defaults = Defaults {
    pipeline: "Verkoop",
    phases: ["Nieuw", "In gesprek", "Offerte verstuurd", "Onderhandeling"],
    sources: ["Website", "Aanbeveling", "Telefoon", "E-mail", "Beurs"],
};

const ENGLISH: Defaults = Defaults {
    pipeline: "Sales",
    phases: ["New", "In contact", "Quote sent", "Negotiation"],
    sources: ["Website", "Referral", "Phone", "Email", "Event"],
};

impl Defaults {
    fn for_country(country: &str) -> Self {
        if matches!(country, "NL" | "BE") { DUTCH } else { ENGLISH }
    }
}

/// The first pipeline of an account. Its phases and sources are in their order.
struct Initial {
    created_at: DateTime<Utc>,
    pipeline_id: Uuid,
    pipeline: &'static str,
    phase_ids: Vec<Uuid>,
    phases: Vec<&'static str>,
    sources: Vec<&'static str>,
}

impl Initial {
    fn new(defaults: &Defaults, created_at: DateTime<Utc>, mut new_id: impl FnMut() -> Uuid) -> Self {
        Self {
            created_at,
            pipeline_id: new_id(),
            pipeline: defaults.pipeline,
            phase_ids: defaults.phases.iter().map(|_| new_id()).collect(),
            phases: defaults.phases.to_vec(),
            sources: defaults.sources.to_vec(),
        }
    }
}

/// The version of a new record.
const FIRST: i64 = 1;

impl From<&Initial> for Vec<Phase> {
    fn from(initial: &Initial) -> Self {
        let phases = initial.phase_ids.iter().zip(&initial.phases).zip(1..);
        let phase = |((id, name), order): ((&Uuid, &&str), i32)| Phase {
            id: id.to_string(),
            pipeline_id: initial.pipeline_id.to_string(),
            name: (*name).to_owned(),
            order,
            version: FIRST,
            updated_at: Some(timestamp(initial.created_at)),
        };
        phases.map(phase).collect()
    }
}

impl From<&Initial> for Pipeline {
    fn from(initial: &Initial) -> Self {
        let phases = Vec::<Phase>::from(initial).into_iter();
        let phase = |Phase { id, name, order, .. }: Phase| PipelinePhase { id, name, order };
        Self {
            id: initial.pipeline_id.to_string(),
            name: initial.pipeline.to_owned(),
            active: true,
            phases: phases.map(phase).collect(),
            version: FIRST,
            updated_at: Some(timestamp(initial.created_at)),
        }
    }
}

impl From<&Initial> for Vec<DealSource> {
    fn from(initial: &Initial) -> Self {
        let sources = initial.sources.iter().zip(1..);
        let source = |(name, order): (&&str, i32)| DealSource {
            name: (*name).to_owned(),
            order,
            version: FIRST,
            updated_at: Some(timestamp(initial.created_at)),
        };
        sources.map(source).collect()
    }
}
