//! What makes a pipeline valid, and finding one in the list of all. Pure.

use chassis_base::id;
use chassis_base::update_mask::UpdateMask;
use proto::api::Fault;
use proto::crm::PipelineInput;
use proto::{At, Faults};
use uuid::Uuid;

use super::{FoundPhase, Pipeline};
use crate::error::Error;
use crate::{kind, ordering};

pub(super) fn find(pipelines: Vec<Pipeline>, id: &str) -> Result<Pipeline, Error> {
    with_id(pipelines, id).ok_or(Error::NotFound(kind::PIPELINE))
}

/// The pipeline that a request names in its body, in `pipeline_id`.
pub(super) fn find_named(pipelines: Vec<Pipeline>, id: &str) -> Result<Pipeline, Error> {
    with_id(pipelines, id).ok_or_else(|| {
        let mut faults = Faults::default();
        let detail = "pipeline_id must be the id of a pipeline of this account";
        faults.add(&At::ROOT.name("pipeline_id"), Fault::UnknownReference, detail);
        chassis_base::Error::from(faults).into()
    })
}

fn with_id(pipelines: Vec<Pipeline>, id: &str) -> Option<Pipeline> {
    let id = id::parse(id);
    pipelines.into_iter().find(|pipeline| Some(pipeline.id) == id)
}

pub(super) fn find_phase(pipelines: Vec<Pipeline>, id: &str) -> Result<FoundPhase, Error> {
    let id = id::parse(id);
    let find = |pipeline: Pipeline| {
        let phase = pipeline.phases.iter().find(|phase| Some(phase.id) == id).cloned();
        phase.map(|phase| FoundPhase { pipeline, phase })
    };
    pipelines.into_iter().find_map(find).ok_or(Error::NotFound(kind::PHASE))
}

/// Refuses phases of a new pipeline that have no name.
pub(super) fn check_phase_names(names: &[String], faults: &mut Faults) {
    let at = At::ROOT.name("phases");
    for (index, _) in names.iter().enumerate().filter(|(_, name)| name.is_empty()) {
        faults.add(&at.index(index), Fault::Required, "a phase needs a name");
    }
}

/// Checks the mask of a change, and that a mask with `active` comes with a value.
pub(super) fn check_change(named: UpdateMask<'_>, given: &PipelineInput, faults: &mut Faults) {
    named.check(|name| ["name", "active"].contains(&name), kind::PIPELINE, faults);
    if matches!(named, UpdateMask::Only(_)) && named.has("active") && given.active.is_none() {
        let at = At::ROOT.name("pipeline");
        faults.add(&at.name("active"), Fault::NotNullable, "active must be true or false");
    }
}

/// Gives a pipeline the named values of `given`. Without a mask, a pipeline without `active` is active.
pub(super) fn apply(named: UpdateMask<'_>, given: &PipelineInput, pipeline: &mut Pipeline) {
    named.put("name", &given.name, &mut pipeline.name);
    named.put("active", &given.active.unwrap_or(true), &mut pipeline.active);
}

/// The ids of a new order, which must name each of `existing` once. Any fault makes the result meaningless.
pub(super) fn read_order(ids: &[String], existing: &[Uuid], what: &str, faults: &mut Faults) -> Vec<Uuid> {
    let requested: Vec<Option<Uuid>> = ids.iter().map(|id| id::parse(id)).collect();
    ordering::check(&requested, existing, what, &At::ROOT.name("ids"), faults);
    requested.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::super::Phase;
    use super::*;

    fn sales() -> Pipeline {
        let now = DateTime::UNIX_EPOCH;
        Pipeline {
            id: Uuid::from_u128(1),
            name: "Sales".into(),
            active: false,
            phases: vec![Phase::new(Uuid::from_u128(11), "New", 1, now)],
            version: 1,
            updated_at: now,
        }
    }

    fn changed(named: UpdateMask<'_>, given: &PipelineInput) -> (String, bool, usize) {
        let mut faults = Faults::default();
        check_change(named, given, &mut faults);
        let mut pipeline = sales();
        apply(named, given, &mut pipeline);
        (pipeline.name, pipeline.active, faults.len())
    }

    #[test]
    fn only_what_the_mask_names_changes() {
        let given = PipelineInput { name: "Rent".into(), active: Some(true), ..PipelineInput::default() };
        let paths = |paths: &[&str]| paths.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(changed(UpdateMask::Only(&paths(&["name"])), &given), ("Rent".into(), false, 0));
        assert_eq!(changed(UpdateMask::Only(&paths(&["active"])), &given), ("Sales".into(), true, 0));
        assert_eq!(changed(UpdateMask::Only(&paths(&["phases"])), &given), ("Sales".into(), false, 1));
    }

    #[test]
    fn a_whole_pipeline_is_active_unless_it_says_otherwise_and_a_mask_must_say_it() {
        let given = PipelineInput { name: "Rent".into(), ..PipelineInput::default() };
        assert_eq!(changed(UpdateMask::All, &given), ("Rent".into(), true, 0));
        let (_, _, faults) = changed(UpdateMask::Only(&["active".to_owned()]), &given);
        assert_eq!(faults, 1);
    }

    #[test]
    fn a_phase_is_found_with_its_pipeline() {
        let found = find_phase(vec![sales()], &Uuid::from_u128(11).to_string()).unwrap();
        assert_eq!((found.pipeline, found.phase.order), (sales(), 1));
        assert!(find_phase(vec![sales()], "x").is_err());
        assert!(find(vec![sales()], &Uuid::from_u128(11).to_string()).is_err());
    }
}
