//! What makes a deal valid, where it may be, and what a change of it means. Pure.

use chassis::mask::Named;
use chrono::{DateTime, Utc};
use proto::api::Fault;
use proto::crm::{DealInput, DealPriority, DealStatus};
use proto::{At, Faults};
use uuid::Uuid;

use super::{Place, Record, Values};
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

/// The names that a field mask may not have, and the fields that a request speaks of but that cannot be empty.
pub fn check_fields(named: Named<'_>, given: &DealInput, at: &At<'_>, faults: &mut Faults) {
    named.check(|name| FIELDS.contains(&name), "deal", faults);
    for (name, is_empty) in [("title", given.title.is_empty()), ("client_id", given.client_id.is_empty())] {
        if is_empty && named.has(name) {
            faults.add(&at.name(name), Fault::Required, format!("{name} is required"));
        }
    }
    // Left out of a whole deal these have defaults; a mask that names one must say which.
    let Named::Only(_) = named else { return };
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

/// Which pipeline and phase a request names; empty for none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    pub pipeline: &'a str,
    pub phase: &'a str,
}

impl<'a> Wanted<'a> {
    pub fn of(named: Named<'_>, given: &'a DealInput) -> Self {
        let text = |name: &str, value: &'a String| if named.has(name) { value.as_str() } else { "" };
        Self { pipeline: text("pipeline_id", &given.pipeline_id), phase: text("phase_id", &given.phase_id) }
    }
}

/// Where a deal will be. A new deal goes to the first active pipeline, and whoever comes to a pipeline without naming a
/// phase to the first one there. `None` when there is a fault.
pub fn place(
    board: &[Pipeline],
    wanted: Wanted<'_>,
    current: Option<Place>,
    at: &At<'_>,
    faults: &mut Faults,
) -> Option<Place> {
    let (pipeline_at, phase_at) = (at.name("pipeline_id"), at.name("phase_id"));
    if faults.cover(&pipeline_at) || faults.cover(&phase_at) {
        return None;
    }
    let by_id = |id: Option<Uuid>| board.iter().find(|pipeline| Some(pipeline.id) == id);
    let pipeline = match current {
        _ if !wanted.pipeline.is_empty() => by_id(chassis::id::parse(wanted.pipeline)),
        Some(place) => by_id(Some(place.pipeline_id)),
        None => board.iter().find(|pipeline| pipeline.active),
    };
    let Some(pipeline) = pipeline else {
        let (code, detail) = if wanted.pipeline.is_empty() {
            (Fault::Required, "pipeline_id is required: this account has no active pipeline")
        } else {
            (Fault::UnknownReference, "pipeline_id must be the id of a pipeline of this account")
        };
        faults.add(&pipeline_at, code, detail);
        return None;
    };
    let phase_id = if !wanted.phase.is_empty() {
        find_phase(board, pipeline, wanted.phase, &phase_at, faults)?
    } else if let Some(place) = current.filter(|place| place.pipeline_id == pipeline.id) {
        place.phase_id
    } else {
        pipeline.phases.first()?.id
    };
    Some(Place { pipeline_id: pipeline.id, phase_id })
}

fn find_phase(
    board: &[Pipeline],
    pipeline: &Pipeline,
    wanted: &str,
    at: &At<'_>,
    faults: &mut Faults,
) -> Option<Uuid> {
    let id = chassis::id::parse(wanted);
    let has = |pipeline: &Pipeline| pipeline.phases.iter().any(|phase| Some(phase.id) == id);
    if has(pipeline) {
        return id;
    }
    if board.iter().any(has) {
        let detail =
            format!("phase_id must be a phase of the pipeline {}; this one is of another", pipeline.name);
        faults.add(at, Fault::Conflicting, detail);
    } else {
        faults.add(at, Fault::UnknownReference, "phase_id must be the id of a phase of this account");
    }
    None
}

/// The values of a new deal.
pub fn create(given: &DealInput, place: Place) -> Values {
    let fresh = Values {
        title: String::new(),
        client_id: Uuid::nil(),
        place,
        amount: None,
        priority: DealPriority::Medium,
        status: DealStatus::Open,
        expected_close_date: None,
        source: String::new(),
    };
    apply(Named::All, given, place, fresh)
}

/// The named values of `given`, the others of `current`. What is empty was allowed to be: then it has its default.
pub fn apply(named: Named<'_>, given: &DealInput, place: Place, current: Values) -> Values {
    let mut values = Values { place, ..current };
    // The form of all of these was checked.
    named.put("title", &given.title, &mut values.title);
    named.put("client_id", &chassis::id::parse(&given.client_id).unwrap_or_default(), &mut values.client_id);
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

/// What became of a deal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Happened {
    /// Whether anything is different.
    pub changed: bool,
    /// The phase that it left.
    pub left: Option<Uuid>,
    /// The status that it had, when it has another now.
    pub was: Option<DealStatus>,
}

impl Happened {
    /// Whether it belongs into the history.
    pub fn is_step(self) -> bool {
        self.left.is_some() || self.was.is_some()
    }
}

/// Gives a deal new values, and its times and version what follows from them. A change of nothing leaves no trace.
pub fn settle(record: &mut Record, values: Values, now: DateTime<Utc>) -> Happened {
    let old = &record.values;
    let happened = Happened {
        changed: *old != values,
        left: (old.place.phase_id != values.place.phase_id).then_some(old.place.phase_id),
        was: (old.status != values.status).then_some(old.status),
    };
    if happened.changed {
        record.version += 1;
        record.updated_at = now;
    }
    if happened.left.is_some() {
        record.phase_since = now;
    }
    if happened.was.is_some() {
        record.won_at = (values.status == DealStatus::Won).then_some(now);
        record.lost_at = (values.status == DealStatus::Lost).then_some(now);
    }
    record.values = values;
    happened
}

/// What a search looks through, in lower case.
pub fn search_text(values: &Values) -> String {
    values.title.to_lowercase()
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
