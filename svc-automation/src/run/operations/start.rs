//! Starts runs, in the transaction that stores what starts them.

use chassis_data::Tx;
use proto::automation::Run;

use super::AUDITED;
use crate::definition::{FlowRef, store as definitions};
use crate::error::Error;
use crate::event::Event;
use crate::event::rules::MAX_DEPTH;
use crate::run::{Record, StartedRun, Status, store};

/// Runs of an account that have not ended. Beyond them a run is stored as failed, so that it can be seen and restarted.
const MAX_OPEN_RUNS: i64 = 10_000;

/// A run that is to be started.
struct Start<'a> {
    flow: &'a FlowRef,
    event: &'a Event,
}

/// Starts the active flows that the events trigger, in the order of the events.
pub(crate) async fn start_triggered(tx: &mut Tx<'_>, events: &[Event]) -> Result<Vec<StartedRun>, Error> {
    let account = tx.account();
    let mut kinds: Vec<String> = events.iter().map(|event| event.kind.clone()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let flows = definitions::find_triggered(tx.db(), account, &kinds).await?;
    let starts = events.iter().flat_map(|event| {
        let triggered = flows.iter().filter(move |flow| flow.trigger_key == event.kind);
        triggered.map(move |flow| Start { flow, event })
    });
    let starts: Vec<Start<'_>> = starts.collect();
    Ok(start_all(tx, &starts).await?.into_iter().map(StartedRun::from).collect())
}

/// Starts one flow, whatever its trigger is.
pub(crate) async fn start_flow(tx: &mut Tx<'_>, flow: &FlowRef, event: &Event) -> Result<Record, Error> {
    let started = start_all(tx, &[Start { flow, event }]).await?;
    started.into_iter().next().ok_or_else(|| Error::internal("a run was not started"))
}

async fn start_all(tx: &mut Tx<'_>, starts: &[Start<'_>]) -> Result<Vec<Record>, Error> {
    if starts.is_empty() {
        return Ok(Vec::new());
    }
    let account = tx.account();
    // Concurrent transactions may each find room and exceed the limit by a few; it protects against floods, for which that
    // is enough.
    let mut room = MAX_OPEN_RUNS - store::count_open(tx.db(), account, MAX_OPEN_RUNS).await?;
    let mut runs = Vec::with_capacity(starts.len());
    for start in starts {
        let run = new_run(tx, start, room);
        room -= i64::from(!run.status.is_finished());
        tx.list(&run.listing());
        metrics::counter!("runs_started_total", "refused" => if run.error.is_empty() { "no" } else { "yes" })
            .increment(1);
        runs.push(run);
    }
    store::insert(tx.db(), account, &runs).await?;
    for run in &runs {
        tx.changed(AUDITED, run.id, &Run::from(run.clone()));
    }
    Ok(runs)
}

fn new_run(tx: &Tx<'_>, Start { flow, event }: &Start<'_>, room: i64) -> Record {
    let now = tx.now();
    let depth = i32::try_from(event.depth).unwrap_or(i32::MAX).saturating_add(1);
    let refused = if depth > i32::try_from(MAX_DEPTH).unwrap_or(i32::MAX) {
        let detail = "runs lead to one another in a circle";
        Some(format!("Not started: {depth} runs in a row led to it. Make sure that no {detail}."))
    } else if room <= 0 {
        Some(format!("Not started: the account has {MAX_OPEN_RUNS} runs that have not ended."))
    } else {
        None
    };
    let (status, next_at) = match refused {
        Some(_) => (Status::Failed, None),
        None => (Status::Queued, Some(now)),
    };
    Record {
        id: tx.id(),
        flow_id: flow.id,
        flow_version: flow.version,
        flow_name: flow.name.clone(),
        trigger_type: flow.trigger_type,
        trigger_key: flow.trigger_key.clone(),
        entity_type: event.entity_type.clone(),
        entity_id: event.entity_id.clone(),
        event_id: Some(event.id),
        event: event.to_json().to_string(),
        depth,
        status,
        stored_status: status,
        step: String::new(),
        attempts: 0,
        renders: 0,
        max_attempts: 0,
        actions_done: 0,
        failed_steps: 0,
        error: refused.unwrap_or_default(),
        next_at,
        version: 1,
        created_at: now,
        updated_at: now,
        started_at: None,
        finished_at: status.is_finished().then_some(now),
    }
}
