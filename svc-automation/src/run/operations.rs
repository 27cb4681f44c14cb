//! What people do with runs: cancel, decide, restart. Each locks the run, so that it and the executor never both move it.

use chassis_data::Tx;
use proto::automation::{Decision, RestartFrom};
use uuid::Uuid;

use super::executor::writes::{finish, go};
use super::rules::{clean, final_status};
use super::start::{self, Started};
use super::{Outcome, Record, Status, StepRecord, store};
use crate::Error;
use crate::event::Event;
use crate::flow::definition::Definition;
use crate::flow::graph::Graph;
use crate::flow::store as flows;

const UNKNOWN: Error = Error::NotFound("run");

/// Ends a run. A step that is being taken is finished, none is begun after it. Twice is the same as once.
pub(crate) async fn cancel(tx: &mut Tx<'_>, id: Uuid) -> Result<Record, Error> {
    let (account, now) = (tx.account(), tx.now());
    let mut run = store::find_locked(tx.db(), account, id).await?.ok_or(UNKNOWN)?;
    match run.status {
        Status::Cancelled => {}
        status if status.is_finished() => {
            return Err(Error::RunFinished { status: status.name().to_owned() });
        }
        _ => {
            finish(&mut run, Status::Cancelled, now);
            store::update(tx.db(), account, &run).await?;
        }
    }
    Ok(run)
}

/// Approves or rejects what a run waits for.
pub(crate) async fn decide(
    tx: &mut Tx<'_>,
    id: Uuid,
    (approved, decision): (bool, &Decision),
) -> Result<(Record, Vec<StepRecord>), Error> {
    let (account, now) = (tx.account(), tx.now());
    let mut run = store::find_locked(tx.db(), account, id).await?.ok_or(UNKNOWN)?;
    let other_step = !decision.step.is_empty() && decision.step != run.step;
    if run.status != Status::PendingApproval || other_step {
        return Err(Error::RunState {
            status: run.status.name().to_owned(),
            needed: if other_step {
                "waiting for a decision about that step"
            } else {
                "waiting for a decision"
            },
        });
    }
    let mut steps = store::list_steps(tx.db(), account, id).await?;
    let asked = steps.iter_mut().find(|step| step.step == run.step && step.outcome == Outcome::Pending);
    let Some(asked) = asked else { return Err(lost("a run that waits for no step")) };
    asked.outcome = if approved { Outcome::Approved } else { Outcome::Rejected };
    asked.decided_by = clean(&decision.who);
    asked.reason.clone_from(&decision.why);
    asked.ended_at = Some(now);
    store::put_step(tx.db(), account, id, asked).await?;
    let version = flows::find_version(tx.db(), account, run.flow_id, run.flow_version).await?;
    let definition = version.and_then(|version| serde_json::from_str::<Definition>(&version.definition).ok());
    let definition = definition.ok_or_else(|| lost("a run without its definition"))?;
    let graph = Graph::of(&definition);
    let node = graph.find(&run.step).ok_or_else(|| lost("a run at a step that its flow does not have"))?;
    let next = if approved { graph.after(node) } else { graph.refused(node) };
    if let Some(step) = next {
        go(&mut run, step, now);
    } else {
        let status = final_status(run.failed_steps);
        finish(&mut run, status, now);
    }
    store::update(tx.db(), account, &run).await?;
    Ok((run, steps))
}

fn lost(what: &str) -> Error {
    chassis_base::Error::Internal(what.to_owned()).into()
}

/// Lets a failed run go on from the step that failed, or starts a new one for the same event. Returns the run's id.
pub(crate) async fn restart(tx: &mut Tx<'_>, id: Uuid, from: RestartFrom) -> Result<Uuid, Error> {
    let account = tx.account();
    let run = store::find_locked(tx.db(), account, id).await?.ok_or(UNKNOWN)?;
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
    let flow = flows::find(tx.db(), account, run.flow_id).await?.ok_or(Error::NotFound("flow"))?;
    let event = event_of(tx, &run);
    let Started { run_id, .. } = start::of_flow(tx, &flow, &event).await?;
    Ok(run_id)
}

async fn resume(tx: &mut Tx<'_>, mut run: Record) -> Result<Uuid, Error> {
    let (account, now) = (tx.account(), tx.now());
    let steps = store::list_steps(tx.db(), account, run.id).await?;
    if let Some(failed) = steps.into_iter().find(|step| step.step == run.step) {
        let again = StepRecord {
            outcome: Outcome::Retrying,
            attempts: 0,
            // What may have been sent is sent again as it was, so that its key still stands for it.
            input: failed.input.clone().filter(|_| failed.uncertain),
            error: String::new(),
            uncertain: false,
            started_at: now,
            ended_at: None,
            ..failed
        };
        store::put_step(tx.db(), account, run.id, &again).await?;
    }
    let step = std::mem::take(&mut run.step);
    go(&mut run, &step, now);
    (run.attempts, run.error, run.finished_at) = (0, String::new(), None);
    store::update(tx.db(), account, &run).await?;
    Ok(run.id)
}

/// The event that a run was started by, as the run has kept it.
fn event_of(tx: &Tx<'_>, run: &Record) -> Event {
    let kept: serde_json::Value = serde_json::from_str(&run.event).unwrap_or_default();
    let text = |name: &str| kept.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
    let occurred_at = chrono::DateTime::parse_from_rfc3339(text("occurred_at"));
    Event {
        id: run.event_id.unwrap_or_else(|| tx.id()),
        kind: text("type").to_owned(),
        entity_type: run.entity_type.clone(),
        entity_id: run.entity_id.clone(),
        sequence: None,
        data: kept.get("data").map_or_else(|| "{}".to_owned(), ToString::to_string),
        occurred_at: occurred_at.map_or(run.created_at, |time| time.to_utc()),
        // A person starts it anew, so the chain does, too.
        depth: tx.depth(),
        actor: String::new(),
    }
}
