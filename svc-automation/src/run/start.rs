//! Starts runs, in the transaction that takes in what they are started by.

use chassis_data::Tx;
use uuid::Uuid;

use super::{LIST, Record, Status, store};
use crate::Error;
use crate::event::Event;
use crate::flow::{self, store as flows};

/// Runs of an account that have not come to their end. Beyond them a run is stored as failed, so that it can be seen and
/// started anew, and nothing else is done.
const MOST_OPEN: i64 = 10_000;
/// Runs in a row that lead to one another.
pub(crate) const MAX_DEPTH: u32 = 8;

/// A run that was started.
pub(crate) struct Started {
    pub flow_id: Uuid,
    pub run_id: Uuid,
    pub status: &'static str,
}

/// Starts the active flows that wait for one of the events, in the order of the events.
pub(crate) async fn matching(tx: &mut Tx<'_>, events: &[Event]) -> Result<Vec<Started>, Error> {
    let account = tx.account();
    let mut kinds: Vec<String> = events.iter().map(|event| event.kind.clone()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let flows = flows::find_triggered(tx.db(), account, &kinds).await?;
    let pairs = events.iter().flat_map(|event| {
        flows.iter().filter(move |flow| flow.trigger_key == event.kind).map(move |flow| (flow, event))
    });
    let pairs: Vec<(&flow::Record, &Event)> = pairs.collect();
    start(tx, &pairs).await
}

/// Starts one flow, whatever its trigger is.
pub(crate) async fn of_flow(tx: &mut Tx<'_>, flow: &flow::Record, event: &Event) -> Result<Started, Error> {
    let started = start(tx, &[(flow, event)]).await?;
    let one = started.into_iter().next();
    Ok(one.ok_or_else(|| chassis_base::Error::Internal("a run that was not started".to_owned()))?)
}

async fn start(tx: &mut Tx<'_>, pairs: &[(&flow::Record, &Event)]) -> Result<Vec<Started>, Error> {
    if pairs.is_empty() {
        return Ok(Vec::new());
    }
    let account = tx.account();
    let mut room = MOST_OPEN - store::count_open(tx.db(), account, MOST_OPEN).await?;
    let mut runs = Vec::with_capacity(pairs.len());
    for (flow, event) in pairs {
        let run = new(tx, flow, event, room);
        room -= i64::from(!run.status.is_finished());
        tx.count(LIST, run.created_at, 1);
        metrics::counter!("runs_started_total", "refused" => if run.error.is_empty() { "no" } else { "yes" })
            .increment(1);
        runs.push(run);
    }
    store::insert(tx.db(), account, &runs).await?;
    let started = |run: Record| Started { flow_id: run.flow_id, run_id: run.id, status: run.status.name() };
    Ok(runs.into_iter().map(started).collect())
}

fn new(tx: &Tx<'_>, flow: &flow::Record, event: &Event, room: i64) -> Record {
    let now = tx.now();
    let depth = i32::try_from(event.depth).unwrap_or(i32::MAX).saturating_add(1);
    let refused = if depth > i32::try_from(MAX_DEPTH).unwrap_or(i32::MAX) {
        let detail = "runs lead to one another in a circle";
        Some(format!("Not started: {depth} runs in a row led to it. Make sure that no {detail}."))
    } else if room <= 0 {
        Some(format!("Not started: the account has {MOST_OPEN} runs that have not come to their end."))
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
        trigger_type: flow.trigger_type.clone(),
        trigger_key: flow.trigger_key.clone(),
        entity_type: event.entity_type.clone(),
        entity_id: event.entity_id.clone(),
        event_id: Some(event.id),
        event: event.shown().to_string(),
        depth,
        status,
        step: String::new(),
        attempts: 0,
        renders: 0,
        max_attempts: 0,
        actions_done: 0,
        failed_steps: 0,
        error: refused.unwrap_or_default(),
        next_at,
        created_at: now,
        updated_at: now,
        started_at: None,
        finished_at: status.is_finished().then_some(now),
    }
}
