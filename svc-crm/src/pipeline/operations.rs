//! Changes of pipelines and phases. Each locks the account's setup first, so that what was read is still true when the
//! change is written.

use chassis_base::id;
use chassis_base::update_mask::UpdateMask;
use chassis_data::Tx;
use chassis_data::log::snapshot::{Shown, uuids};
use proto::At;
use proto::crm::PipelineInput;
use uuid::Uuid;

use super::{FoundPhase, MAX_PHASES, MAX_PIPELINES, Phase, Pipeline, rules, store};
use crate::error::Error;
use crate::{kind, ordering, setup};

/// Why a call that changes nothing has no entry in the log.
const UNCHANGED: &str = "it is as it was";

/// All pipelines, after locking them.
async fn list_locked(tx: &mut Tx<'_>) -> Result<Vec<Pipeline>, Error> {
    setup::operations::lock(tx).await?;
    let account = tx.account();
    store::list(tx.db(), account).await
}

pub(super) async fn create(
    tx: &mut Tx<'_>,
    given: &PipelineInput,
    phase_names: &[String],
) -> Result<Pipeline, Error> {
    rules::check_phase_names(phase_names, &mut tx.faults);
    tx.valid()?;
    let others = list_locked(tx).await?;
    let at = At::ROOT.name("pipeline");
    ordering::check_length(others.len(), MAX_PIPELINES, "pipelines", &at, &mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let now = tx.now();
    let phases = phase_names.iter().zip(1..);
    let pipeline = Pipeline {
        id: tx.id(),
        name: given.name.clone(),
        active: given.active.unwrap_or(true),
        phases: phases.map(|(name, order)| Phase::new(tx.id(), name, order, now)).collect(),
        version: 1,
        updated_at: now,
    };
    store::insert(tx.db(), account, &pipeline).await?;
    for phase in &pipeline.phases {
        store::insert_phase(tx.db(), account, pipeline.id, phase).await?;
    }
    record_change(tx, &pipeline, &pipeline.phases);
    Ok(pipeline)
}

/// Changes what the mask names; without a mask, everything but the phases.
pub(super) async fn update(
    tx: &mut Tx<'_>,
    id: &str,
    given: &PipelineInput,
    named: UpdateMask<'_>,
) -> Result<Pipeline, Error> {
    id::ignore_malformed(&mut tx.faults);
    rules::check_change(named, given, &mut tx.faults);
    tx.valid()?;
    let found = rules::find(list_locked(tx).await?, id)?;
    let mut pipeline = found.clone();
    rules::apply(named, given, &mut pipeline);
    if pipeline == found {
        tx.unaudited(UNCHANGED);
        return Ok(pipeline);
    }
    save(tx, &mut pipeline, &[]).await?;
    Ok(pipeline)
}

pub(super) async fn delete(tx: &mut Tx<'_>, id: &str) -> Result<(), Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let pipelines = list_locked(tx).await?;
    let is_last = pipelines.len() == 1;
    let pipeline = rules::find(pipelines, id)?;
    if is_last {
        return Err(Error::IsLast(kind::PIPELINE));
    }
    let account = tx.account();
    // Deals do not take the lock. A deal that is stored after this query makes the foreign key of deals refuse the
    // deletion, and the transaction runs again.
    if store::has_deals(tx.db(), account, pipeline.id, None).await? {
        return Err(Error::HasDeals(kind::PIPELINE));
    }
    store::delete(tx.db(), account, pipeline.id).await?;
    tx.removed(kind::PIPELINE, pipeline.id);
    for phase in &pipeline.phases {
        tx.removed(kind::PHASE, phase.id);
    }
    Ok(())
}

/// Puts all pipelines into the order of these ids. Their order is that of the list; none of them shows its place, so
/// none has a new version.
pub(super) async fn reorder(tx: &mut Tx<'_>, ids: &[String]) -> Result<Vec<Pipeline>, Error> {
    tx.valid()?;
    let existing: Vec<Uuid> = list_locked(tx).await?.iter().map(|pipeline| pipeline.id).collect();
    let ids = rules::read_order(ids, &existing, kind::PIPELINE, &mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    store::reorder(tx.db(), account, &ids).await?;
    tx.unaudited("no pipeline shows its place in the list");
    store::list(tx.db(), account).await
}

/// Adds a phase at the end of a pipeline. Returns it with the pipeline.
pub(super) async fn create_phase(
    tx: &mut Tx<'_>,
    pipeline_id: &str,
    name: &str,
) -> Result<FoundPhase, Error> {
    tx.valid()?;
    let mut pipeline = rules::find_named(list_locked(tx).await?, pipeline_id)?;
    let at = At::ROOT.name("name");
    ordering::check_length(pipeline.phases.len(), MAX_PHASES, "phases", &at, &mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let now = tx.now();
    let order = i32::try_from(pipeline.phases.len() + 1).unwrap_or(i32::MAX);
    let phase = Phase::new(tx.id(), name, order, now);
    store::insert_phase(tx.db(), account, pipeline.id, &phase).await?;
    pipeline.phases.push(phase.clone());
    save(tx, &mut pipeline, std::slice::from_ref(&phase)).await?;
    Ok(FoundPhase { pipeline, phase })
}

/// Renames a phase. Returns it with the pipeline.
pub(super) async fn rename_phase(tx: &mut Tx<'_>, id: &str, name: &str) -> Result<FoundPhase, Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let FoundPhase { mut pipeline, mut phase } = rules::find_phase(list_locked(tx).await?, id)?;
    if phase.name == name {
        tx.unaudited(UNCHANGED);
        return Ok(FoundPhase { pipeline, phase });
    }
    let account = tx.account();
    let now = tx.now();
    name.clone_into(&mut phase.name);
    phase.count_change(now);
    store::rename_phase(tx.db(), account, &phase).await?;
    for renamed in pipeline.phases.iter_mut().filter(|other| other.id == phase.id) {
        renamed.clone_from(&phase);
    }
    save(tx, &mut pipeline, std::slice::from_ref(&phase)).await?;
    Ok(FoundPhase { pipeline, phase })
}

pub(super) async fn delete_phase(tx: &mut Tx<'_>, id: &str) -> Result<(), Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let FoundPhase { mut pipeline, phase } = rules::find_phase(list_locked(tx).await?, id)?;
    if pipeline.phases.len() == 1 {
        return Err(Error::IsLast(kind::PHASE));
    }
    let account = tx.account();
    // As in `delete`: the foreign key of deals refuses the deletion when this query missed a deal.
    if store::has_deals(tx.db(), account, pipeline.id, Some(phase.id)).await? {
        return Err(Error::HasDeals(kind::PHASE));
    }
    let now = tx.now();
    store::delete_phase(tx.db(), account, pipeline.id, phase.id).await?;
    tx.removed(kind::PHASE, phase.id);
    pipeline.phases.retain(|other| other.id != phase.id);
    let moved = ordering::renumber(&mut pipeline.phases, now);
    store::place_phases(tx.db(), account, &moved, now).await?;
    save(tx, &mut pipeline, &moved).await
}

/// Puts all phases of a pipeline into the order of these ids.
pub(super) async fn reorder_phases(
    tx: &mut Tx<'_>,
    pipeline_id: &str,
    ids: &[String],
) -> Result<Pipeline, Error> {
    tx.valid()?;
    let mut pipeline = rules::find_named(list_locked(tx).await?, pipeline_id)?;
    let existing: Vec<Uuid> = pipeline.phases.iter().map(|phase| phase.id).collect();
    let ids = rules::read_order(ids, &existing, kind::PHASE, &mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let now = tx.now();
    pipeline.phases.sort_by_key(|phase| ids.iter().position(|id| *id == phase.id));
    let moved = ordering::renumber(&mut pipeline.phases, now);
    if moved.is_empty() {
        tx.unaudited(UNCHANGED);
        return Ok(pipeline);
    }
    store::place_phases(tx.db(), account, &moved, now).await?;
    save(tx, &mut pipeline, &moved).await?;
    Ok(pipeline)
}

/// Stores a changed pipeline as its next version, and records it in the log with its changed phases, which are stored.
async fn save(tx: &mut Tx<'_>, pipeline: &mut Pipeline, phases: &[Phase]) -> Result<(), Error> {
    let account = tx.account();
    let now = tx.now();
    pipeline.count_change(now);
    store::update(tx.db(), account, pipeline).await?;
    record_change(tx, pipeline, phases);
    Ok(())
}

/// Records the current pipeline and these phases of it in the log.
fn record_change(tx: &mut Tx<'_>, pipeline: &Pipeline, phases: &[Phase]) {
    for phase in phases {
        tx.changed(kind::PHASE, phase.id, &phase.clone().into_message(pipeline.id));
    }
    tx.changed(kind::PIPELINE, pipeline.id, &proto::crm::Pipeline::from(pipeline.clone()));
}

/// Shows the pipelines with these ids.
pub(crate) async fn show(tx: &mut Tx<'_>, ids: &[String], shown: &mut Shown) -> Result<(), Error> {
    let (account, ids) = (tx.account(), uuids(ids));
    for pipeline in store::list(tx.db(), account).await? {
        if ids.contains(&pipeline.id) {
            shown.add(pipeline.id, &proto::crm::Pipeline::from(pipeline));
        }
    }
    Ok(())
}

/// Shows the phases with these ids.
pub(crate) async fn show_phases(tx: &mut Tx<'_>, ids: &[String], shown: &mut Shown) -> Result<(), Error> {
    let account = tx.account();
    let pipelines = store::list(tx.db(), account).await?;
    let phases = pipelines.into_iter().flat_map(Pipeline::into_phase_messages);
    for phase in phases.filter(|phase| ids.contains(&phase.id)) {
        shown.add(&phase.id, &phase);
    }
    Ok(())
}
