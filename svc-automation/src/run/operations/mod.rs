//! Writes of runs: what people do with them (here), starting them (`start`), and what the worker records of their steps
//! (`step`). Each locks the run before it decides, so that the worker and a person never both move it.

mod start;
pub(super) mod step;

use chassis_data::Tx;
use chassis_data::log::snapshot::{Shown, uuids};
use chrono::DateTime;
use proto::automation::{Decision, RestartFrom, Run, RunStep};
use serde_json::Value;
use uuid::Uuid;

use super::rules::final_status;
use super::{Outcome, Record, Status, listing, message, store};
use crate::definition::graph::Graph;
use crate::definition::{Version, store as definitions};
use crate::error::Error;
use crate::event::Event;
use crate::text::storable;

pub(crate) use start::{start_flow, start_triggered};

pub(super) const NOT_FOUND: Error = Error::NotFound("run");
/// The name of a run in the log.
const AUDITED: &str = "run";

/// Ends a run. A step in progress is finished, and none is started after it. A cancelled run stays as it is.
pub(super) async fn cancel(tx: &mut Tx<'_>, id: Uuid) -> Result<Run, Error> {
    let (account, now) = (tx.account(), tx.now());
    let mut run = store::find_locked(tx.db(), account, id).await?.ok_or(NOT_FOUND)?;
    if run.status == Status::Cancelled {
        // The response shows a part of the run, and the log would take it for a record.
        tx.unaudited("a run that was cancelled before stays as it is");
        return Ok(run.into());
    }
    if run.status.is_finished() {
        return Err(Error::RunFinished { status: run.status.name().to_owned() });
    }
    run.finish(Status::Cancelled, now);
    let steps = store::list_steps(tx.db(), account, id).await?;
    save(tx, run, message::steps(&steps)).await
}

/// Stores a run as its next version and writes it to the log, both with its steps. Whatever changes what a run shows comes
/// here, once in a transaction.
async fn save(tx: &mut Tx<'_>, mut run: Record, steps: Vec<RunStep>) -> Result<Run, Error> {
    let account = tx.account();
    run.version += 1;
    run.updated_at = tx.now();
    store::update(tx.db(), account, &run).await?;
    tx.relist(&run.stored_listing(), &run.listing());
    let id = run.id;
    let shown = run.with_steps(steps);
    tx.changed(AUDITED, id, &shown);
    Ok(shown)
}

/// Approves or rejects what a run waits for.
pub(super) async fn decide(
    tx: &mut Tx<'_>,
    id: Uuid,
    is_approved: bool,
    decision: &Decision,
) -> Result<Run, Error> {
    let (account, now) = (tx.account(), tx.now());
    let mut run = store::find_locked(tx.db(), account, id).await?.ok_or(NOT_FOUND)?;
    let is_other_step = !decision.step.is_empty() && decision.step != run.step;
    if run.status != Status::PendingApproval || is_other_step {
        let needed =
            if is_other_step { "waiting for a decision about that step" } else { "waiting for a decision" };
        return Err(Error::RunState { status: run.status.name().to_owned(), needed });
    }
    let mut steps = store::list_steps(tx.db(), account, id).await?;
    let pending = steps.iter_mut().find(|step| step.step == run.step && step.outcome == Outcome::Pending);
    let pending = pending.ok_or_else(|| Error::internal("a run waits for a decision at no step"))?;
    pending.outcome = if is_approved { Outcome::Approved } else { Outcome::Rejected };
    pending.decided_by = storable(&decision.who);
    pending.reason.clone_from(&decision.why);
    pending.ended_at = Some(now);
    store::put_step(tx.db(), account, id, pending).await?;
    let version = definitions::find_version(tx.db(), account, run.flow_id, run.flow_version).await?;
    let definition = version.as_ref().and_then(Version::parse);
    let definition = definition.ok_or_else(|| Error::internal("the definition of a run cannot be read"))?;
    let graph = Graph::of(&definition);
    let node = graph.find(&run.step);
    let node = node.ok_or_else(|| Error::internal("a run is at a step that its flow does not have"))?;
    let next = if is_approved { graph.after(node) } else { graph.rejected(node) };
    match next {
        Some(step) => run.go_to(step, now),
        None => run.finish(final_status(run.failed_steps), now),
    }
    save(tx, run, message::steps(&steps)).await
}

/// Continues a failed run from the step that failed, or starts a new run for the same event.
pub(super) async fn restart(tx: &mut Tx<'_>, id: Uuid, from: RestartFrom) -> Result<Run, Error> {
    let account = tx.account();
    let run = store::find_locked(tx.db(), account, id).await?.ok_or(NOT_FOUND)?;
    let wrong_state = |needed| Error::RunState { status: run.status.name().to_owned(), needed };
    if from == RestartFrom::FailedStep {
        if run.status != Status::Failed || run.step.is_empty() {
            return Err(wrong_state("failed at one of its steps"));
        }
        return resume(tx, run).await;
    }
    if !run.status.is_finished() {
        return Err(wrong_state("finished"));
    }
    let flow = definitions::find_flow(tx.db(), account, run.flow_id).await?;
    let flow = flow.ok_or(Error::NotFound("flow"))?;
    let event = event_of(tx, &run);
    Ok(start_flow(tx, &flow, &event).await?.into())
}

async fn resume(tx: &mut Tx<'_>, mut run: Record) -> Result<Run, Error> {
    let (account, now) = (tx.account(), tx.now());
    let mut steps = store::list_steps(tx.db(), account, run.id).await?;
    if let Some(failed) = steps.iter_mut().find(|step| step.step == run.step) {
        failed.outcome = Outcome::Retrying;
        failed.attempts = 0;
        // A request that may have been received is sent again unchanged, because its idempotency key stands for that
        // content. Any other is rendered anew.
        failed.input = failed.input.take().filter(|_| failed.uncertain);
        failed.error.clear();
        failed.uncertain = false;
        failed.started_at = now;
        failed.ended_at = None;
        store::put_step(tx.db(), account, run.id, failed).await?;
    }
    let step = std::mem::take(&mut run.step);
    run.go_to(&step, now);
    run.attempts = 0;
    run.error.clear();
    run.finished_at = None;
    save(tx, run, message::steps(&steps)).await
}

/// The event of a run, from the copy that the run has.
fn event_of(tx: &Tx<'_>, run: &Record) -> Event {
    let copy: Value = serde_json::from_str(&run.event).unwrap_or_default();
    let text = |name: &str| copy.get(name).and_then(Value::as_str).unwrap_or_default();
    let occurred_at = DateTime::parse_from_rfc3339(text("occurred_at"));
    Event {
        id: run.event_id.unwrap_or_else(|| tx.id()),
        kind: text("type").to_owned(),
        entity_type: run.entity_type.clone(),
        entity_id: run.entity_id.clone(),
        sequence: None,
        data: copy.get("data").map_or_else(|| "{}".to_owned(), ToString::to_string),
        occurred_at: occurred_at.map_or(run.created_at, |time| time.to_utc()),
        // A person starts it, so the chain of runs that led to the first one does not count.
        depth: tx.depth(),
        actor: String::new(),
    }
}

/// Deletes runs that ended long ago, at most `limit`; returns how many.
pub(crate) async fn purge(tx: &mut Tx<'_>, limit: i64) -> Result<u64, Error> {
    let (account, now) = (tx.account(), tx.now());
    let purged = store::purge(tx.db(), account, now, limit).await?;
    for run in &purged {
        tx.unlist(&listing(run.created_at, run.id, &run.status, &run.trigger_type));
        tx.removed(AUDITED, run.id);
    }
    Ok(u64::try_from(purged.len()).unwrap_or(u64::MAX))
}

/// Shows the runs with these ids, with their steps.
pub(crate) async fn show(tx: &mut Tx<'_>, ids: &[String], shown: &mut Shown) -> Result<(), Error> {
    let account = tx.account();
    for id in uuids(ids) {
        if let Some(run) = store::find(tx.db(), account, id).await? {
            let steps = store::list_steps(tx.db(), account, id).await?;
            shown.add(id, &run.with_steps(message::steps(&steps)));
        }
    }
    Ok(())
}
