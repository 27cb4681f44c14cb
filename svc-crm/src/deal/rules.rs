//! What makes a deal valid, which phase it can be in, and what follows from a change. Pure.

use chassis_base::update_mask::UpdateMask;
use chrono::{DateTime, Utc};
use proto::api::Fault;
use proto::crm::{DealInput, DealPriority, DealStatus};
use proto::{At, Faults};
use uuid::Uuid;

use super::{PhaseRef, Record, Values};
use crate::pipeline::Pipeline;

const FIELDS: [&str; 9] = [
    "title",
    "client_id",
    "pipeline_id",
    "phase_id",
    "amount",
    "priority",
    "status",
    "expected_close_date",
    "source",
];

/// Refuses a field mask with other names than those of fields, and fields that are sent empty but cannot be.
pub(super) fn check_fields(named: UpdateMask<'_>, given: &DealInput, at: &At<'_>, faults: &mut Faults) {
    named.check(|name| FIELDS.contains(&name), "deal", faults);
    for (name, is_empty) in [("title", given.title.is_empty()), ("client_id", given.client_id.is_empty())] {
        if is_empty && named.has(name) {
            faults.add(&at.name(name), Fault::Required, format!("{name} is required"));
        }
    }
    // A whole deal may leave these out, and they get their defaults. A mask that names one must come with a value.
    let UpdateMask::Only(_) = named else { return };
    for (name, is_empty) in [
        ("pipeline_id", given.pipeline_id.is_empty()),
        ("phase_id", given.phase_id.is_empty()),
        ("priority", given.priority() == DealPriority::Unspecified),
        ("status", given.status() == DealStatus::Unspecified),
    ] {
        if is_empty && named.has(name) {
            faults.add(&at.name(name), Fault::NotNullable, format!("{name} cannot be emptied"));
        }
    }
}

/// The ids of the pipeline and phase that a request names; empty when it names none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestedPhase<'a> {
    pub pipeline: &'a str,
    pub phase: &'a str,
}

impl<'a> RequestedPhase<'a> {
    pub(super) fn new(named: UpdateMask<'_>, given: &'a DealInput) -> Self {
        let text = |name: &str, value: &'a String| if named.has(name) { value.as_str() } else { "" };
        Self { pipeline: text("pipeline_id", &given.pipeline_id), phase: text("phase_id", &given.phase_id) }
    }
}

/// The phase that a deal will be in. A new deal that names no pipeline goes to the first active one, and a deal that
/// comes into a pipeline without naming a phase goes to its first phase. `None` when there is a fault.
pub(super) fn resolve_phase(
    pipelines: &[Pipeline],
    requested: RequestedPhase<'_>,
    current: Option<PhaseRef>,
    at: &At<'_>,
    faults: &mut Faults,
) -> Option<PhaseRef> {
    let pipeline_at = at.name("pipeline_id");
    let phase_at = at.name("phase_id");
    // A field that could not be read has its fault. Its empty value says nothing about what was meant.
    if faults.cover(&pipeline_at) || faults.cover(&phase_at) {
        return None;
    }
    let by_id = |id: Option<Uuid>| pipelines.iter().find(|pipeline| Some(pipeline.id) == id);
    let pipeline = match current {
        _ if !requested.pipeline.is_empty() => by_id(chassis_base::id::parse(requested.pipeline)),
        Some(phase) => by_id(Some(phase.pipeline_id)),
        None => pipelines.iter().find(|pipeline| pipeline.active),
    };
    let Some(pipeline) = pipeline else {
        let (code, detail) = if requested.pipeline.is_empty() {
            (Fault::Required, "pipeline_id is required: this account has no active pipeline")
        } else {
            (Fault::UnknownReference, "pipeline_id must be the id of a pipeline of this account")
        };
        faults.add(&pipeline_at, code, detail);
        return None;
    };
    let phase_id = if !requested.phase.is_empty() {
        find_phase(pipelines, pipeline, requested.phase, &phase_at, faults)?
    } else if let Some(current) = current.filter(|current| current.pipeline_id == pipeline.id) {
        current.phase_id
    } else {
        pipeline.phases.first()?.id
    };
    Some(PhaseRef { pipeline_id: pipeline.id, phase_id })
}

/// The name of a phase.
pub(super) fn phase_name(pipelines: &[Pipeline], phase: PhaseRef) -> Option<String> {
    let mut phases = pipelines.iter().flat_map(|pipeline| &pipeline.phases);
    phases.find(|named| named.id == phase.phase_id).map(|named| named.name.clone())
}

fn find_phase(
    pipelines: &[Pipeline],
    pipeline: &Pipeline,
    requested: &str,
    at: &At<'_>,
    faults: &mut Faults,
) -> Option<Uuid> {
    let id = chassis_base::id::parse(requested);
    let has = |pipeline: &Pipeline| pipeline.phases.iter().any(|phase| Some(phase.id) == id);
    if has(pipeline) {
        return id;
    }
    if pipelines.iter().any(has) {
        let detail =
            format!("phase_id must be a phase of the pipeline {}; this one is of another", pipeline.name);
        faults.add(at, Fault::Conflicting, detail);
    } else {
        faults.add(at, Fault::UnknownReference, "phase_id must be the id of a phase of this account");
    }
    None
}

/// The values of a new deal.
pub(super) fn create(given: &DealInput, phase: PhaseRef) -> Values {
    let empty = Values {
        title: String::new(),
        client_id: Uuid::nil(),
        phase,
        amount: None,
        priority: DealPriority::Medium,
        status: DealStatus::Open,
        expected_close_date: None,
        source: String::new(),
    };
    apply(UpdateMask::All, given, phase, empty)
}

/// The values of `given` that the mask names, and the rest of `current`. The checks have refused what cannot be
/// empty, so an empty value here means the default.
pub(super) fn apply(named: UpdateMask<'_>, given: &DealInput, phase: PhaseRef, current: Values) -> Values {
    let mut values = Values { phase, ..current };
    // The form of all of these was checked, so `ok` and `unwrap_or_default` only turn an empty text into no value.
    named.put("title", &given.title, &mut values.title);
    named.put(
        "client_id",
        &chassis_base::id::parse(&given.client_id).unwrap_or_default(),
        &mut values.client_id,
    );
    named.put("amount", &given.amount.parse().ok(), &mut values.amount);
    named.put(
        "expected_close_date",
        &given.expected_close_date.parse().ok(),
        &mut values.expected_close_date,
    );
    named.put("source", &given.source, &mut values.source);
    if given.priority() != DealPriority::Unspecified {
        named.put("priority", &given.priority(), &mut values.priority);
    }
    if given.status() != DealStatus::Unspecified {
        named.put("status", &given.status(), &mut values.status);
    }
    values
}

/// What an update changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Whether any value is different.
    pub any: bool,
    /// The former phase, if it changed.
    pub previous_phase: Option<Uuid>,
    /// The former status, if it changed.
    pub previous_status: Option<DealStatus>,
}

impl Changes {
    /// Whether the history gets an entry.
    pub(super) fn is_step(self) -> bool {
        self.previous_phase.is_some() || self.previous_status.is_some()
    }
}

/// Gives a deal new values, and sets the version and the times that follow from them. Equal values leave the
/// deal as it is.
pub(super) fn update(record: &mut Record, values: Values, now: DateTime<Utc>) -> Changes {
    let old = &record.values;
    let changes = Changes {
        any: *old != values,
        previous_phase: (old.phase.phase_id != values.phase.phase_id).then_some(old.phase.phase_id),
        previous_status: (old.status != values.status).then_some(old.status),
    };
    if changes.any {
        record.version += 1;
        record.updated_at = now;
    }
    if changes.previous_phase.is_some() {
        record.phase_since = now;
    }
    if changes.previous_status.is_some() {
        record.won_at = (values.status == DealStatus::Won).then_some(now);
        record.lost_at = (values.status == DealStatus::Lost).then_some(now);
    }
    record.values = values;
    changes
}

/// The text that a search looks through, in lower case.
pub(super) fn search_text(values: &Values) -> String {
    values.title.to_lowercase()
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
