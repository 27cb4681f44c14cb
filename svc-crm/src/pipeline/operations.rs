//! Changes of pipelines and phases. Each locks the account's setup first, so that what was read is still true when the
//! change is written.

use chassis_base::id;
use chassis_base::update_mask::UpdateMask;
use chassis_data::Tx;
use proto::At;
use proto::crm::PipelineInput;
use uuid::Uuid;

use super::{FoundPhase, MAX_PHASES, MAX_PIPELINES, Phase, Pipeline, rules, store};
use crate::error::Error;
use crate::{kind, ordering, setup};

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
        phases: phases.map(|(name, order)| Phase { id: tx.id(), name: name.clone(), order }).collect(),
    };
    store::insert(tx.db(), account, &pipeline, now).await?;
    for phase in &pipeline.phases {
        store::insert_phase(tx.db(), account, pipeline.id, phase, now).await?;
    }
    record_change(tx, &pipeline);
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
    let mut pipeline = rules::find(list_locked(tx).await?, id)?;
    rules::apply(named, given, &mut pipeline);
    let account = tx.account();
    let now = tx.now();
    store::update(tx.db(), account, &pipeline, now).await?;
    record_change(tx, &pipeline);
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
    Ok(())
}

/// Puts all pipelines into the order of these ids.
pub(super) async fn reorder(tx: &mut Tx<'_>, ids: &[String]) -> Result<Vec<Pipeline>, Error> {
    tx.valid()?;
    let existing: Vec<Uuid> = list_locked(tx).await?.iter().map(|pipeline| pipeline.id).collect();
    let ids = rules::read_order(ids, &existing, kind::PIPELINE, &mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let now = tx.now();
    store::reorder(tx.db(), account, &ids, now).await?;
    store::list(tx.db(), account).await
}

/// Adds a phase at the end of a pipeline. Returns it with the pipeline as it was before.
pub(super) async fn create_phase(
    tx: &mut Tx<'_>,
    pipeline_id: &str,
    name: &str,
) -> Result<FoundPhase, Error> {
    tx.valid()?;
    let pipeline = rules::find(list_locked(tx).await?, pipeline_id)?;
    let at = At::ROOT.name("name");
    ordering::check_length(pipeline.phases.len(), MAX_PHASES, "phases", &at, &mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let now = tx.now();
    let order = i32::try_from(pipeline.phases.len() + 1).unwrap_or(i32::MAX);
    let phase = Phase { id: tx.id(), name: name.to_owned(), order };
    store::insert_phase(tx.db(), account, pipeline.id, &phase, now).await?;
    record_phase_change(tx, pipeline.id, &phase);
    Ok(FoundPhase { pipeline, phase })
}

/// Renames a phase. Returns it with the pipeline as it was before.
pub(super) async fn rename_phase(tx: &mut Tx<'_>, id: &str, name: &str) -> Result<FoundPhase, Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let FoundPhase { pipeline, mut phase } = rules::find_phase(list_locked(tx).await?, id)?;
    let account = tx.account();
    let now = tx.now();
    name.clone_into(&mut phase.name);
    store::rename_phase(tx.db(), account, &phase, now).await?;
    record_phase_change(tx, pipeline.id, &phase);
    Ok(FoundPhase { pipeline, phase })
}

pub(super) async fn delete_phase(tx: &mut Tx<'_>, id: &str) -> Result<(), Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let FoundPhase { pipeline, phase } = rules::find_phase(list_locked(tx).await?, id)?;
    if pipeline.phases.len() == 1 {
        return Err(Error::IsLast(kind::PHASE));
    }
    let account = tx.account();
    // As in `delete`: the foreign key of deals refuses the deletion when this query missed a deal.
    if store::has_deals(tx.db(), account, pipeline.id, Some(phase.id)).await? {
        return Err(Error::HasDeals(kind::PHASE));
    }
    store::delete_phase(tx.db(), account, pipeline.id, phase.id).await?;
    tx.removed(kind::PHASE, phase.id);
    Ok(())
}

/// Puts all phases of a pipeline into the order of these ids.
pub(super) async fn reorder_phases(
    tx: &mut Tx<'_>,
    pipeline_id: &str,
    ids: &[String],
) -> Result<Pipeline, Error> {
    tx.valid()?;
    let pipeline = rules::find(list_locked(tx).await?, pipeline_id)?;
    let existing: Vec<Uuid> = pipeline.phases.iter().map(|phase| phase.id).collect();
    let ids = rules::read_order(ids, &existing, kind::PHASE, &mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let now = tx.now();
    store::reorder_phases(tx.db(), account, &ids, now).await?;
    rules::find(store::list(tx.db(), account).await?, pipeline_id)
}

/// Records the current pipeline in the log.
fn record_change(tx: &mut Tx<'_>, pipeline: &Pipeline) {
    tx.changed(kind::PIPELINE, pipeline.id, &proto::crm::Pipeline::from(pipeline.clone()));
}

/// Records the current phase in the log.
fn record_phase_change(tx: &mut Tx<'_>, pipeline_id: Uuid, phase: &Phase) {
    tx.changed(kind::PHASE, phase.id, &phase.clone().into_message(pipeline_id));
}
