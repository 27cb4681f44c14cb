//! The writes of the executor, each in a transaction that proves that the run is still its own.

use chassis_base::Error;
use chassis_data::Tx;
use chassis_work::mail::{Mail, Mailer, mailbox};
use chassis_work::worker::Job;
use serde_json::Value;
use uuid::Uuid;

use super::Loaded;
use crate::flow::definition::Kind;
use crate::flow::graph::Node;
use crate::run::prepare::{Letter, Prepared};
use crate::run::rules::{Move, Next, final_status, max_attempts};
use crate::run::{Outcome, Record, Status, StepRecord, store};

/// Bytes of an answer that later steps can use.
const MAX_ANSWER: usize = 256 * 1024;

/// A try that is about to be made.
pub(super) struct Begin {
    pub run: Uuid,
    pub step: StepRecord,
    pub max_attempts: i32,
}

impl Begin {
    pub fn of(loaded: &Loaded, (node, kind): (Node<'_>, Kind<'_>), prepared: &Prepared) -> Self {
        let mut step = loaded.step(node, kind);
        step.attempts += 1;
        step.outcome = Outcome::Running;
        step.input = prepared.input().map(|input| input.to_string());
        Self { run: loaded.run.id, step, max_attempts: count(max_attempts(node.step)) }
    }
}

pub(super) fn count(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Whether the run still stands at this step: whoever has moved it since it was read has the say.
fn stands(run: &Record, step: &StepRecord) -> bool {
    run.step == step.step || (run.step.is_empty() && step.ordinal == 0)
}

/// Counts that a step is about to be rendered, before it is: whatever that does to this process, it is known.
pub(super) async fn count_render(tx: &mut Tx<'_>, id: &Uuid) -> Result<(), crate::Error> {
    let account = tx.account();
    if let Some(mut run) = store::find_locked(tx.db(), account, *id).await? {
        run.renders += 1;
        store::update(tx.db(), account, &run).await?;
    }
    Ok(())
}

/// Takes the last rendering off the count again: the process has outlived it.
pub(super) async fn outlive_render(tx: &mut Tx<'_>, id: &Uuid) -> Result<(), crate::Error> {
    let account = tx.account();
    let found = store::find_locked(tx.db(), account, *id).await?;
    // Whoever has moved the run since has begun to count anew.
    if let Some(mut run) = found.filter(|run| run.renders > 1) {
        run.renders -= 1;
        store::update(tx.db(), account, &run).await?;
    }
    Ok(())
}

/// Notes that a try begins; tells whether it may.
pub(super) async fn begin(tx: &mut Tx<'_>, input: &Begin) -> Result<bool, crate::Error> {
    let (account, now) = (tx.account(), tx.now());
    let found = store::find_locked(tx.db(), account, input.run).await?;
    let Some(mut run) = found.filter(|run| !run.status.is_finished() && stands(run, &input.step)) else {
        return Ok(false);
    };
    note_start(&mut run, now);
    run.status = Status::Running;
    run.step.clone_from(&input.step.step);
    run.attempts = input.step.attempts;
    run.max_attempts = input.max_attempts;
    run.renders = 0;
    // Stays due: whoever takes this over goes on at once.
    run.next_at = Some(now);
    run.updated_at = now;
    store::put_step(tx.db(), account, run.id, &input.step).await?;
    store::update(tx.db(), account, &run).await?;
    Ok(true)
}

fn note_start(run: &mut Record, now: chrono::DateTime<chrono::Utc>) {
    if run.started_at.is_none() {
        run.started_at = Some(now);
        let lag = (now - run.created_at).as_seconds_f64().max(0.0);
        metrics::histogram!("run_start_lag_seconds").record(lag);
    }
}

/// What a step came to.
pub(super) struct Settle {
    pub run: Uuid,
    /// As it was before.
    pub step: StepRecord,
    pub moved: Move,
    pub max_attempts: i32,
    /// A mail to be queued, with the name that it is from.
    pub letter: Option<(Letter, Mailer, String)>,
}

/// Notes what a step came to and moves the run on; tells whether to go on at once.
pub(super) async fn settle(tx: &mut Tx<'_>, input: &Settle) -> Result<bool, crate::Error> {
    let (account, now) = (tx.account(), tx.now());
    let found = store::find_locked(tx.db(), account, input.run).await?;
    let Some(mut run) = found.filter(|run| stands(run, &input.step)) else { return Ok(false) };
    // Cancelled meanwhile: what was begun is still noted, and nothing follows.
    let cancelled = run.status.is_finished();
    let is_effect = matches!(input.step.kind.as_str(), "call" | "http");
    if cancelled && !is_effect {
        return Ok(false);
    }
    if let Some((letter, post, name)) = &input.letter {
        tx.caused_at(run.depth.unsigned_abs());
        queue(tx, run.id, letter, (post, name)).await?;
    }
    store::put_step(tx.db(), account, run.id, &ended_step(input, now)).await?;
    run.actions_done += i32::from(input.moved.acted);
    run.updated_at = now;
    if !cancelled {
        note_start(&mut run, now);
        advance(&mut run, input, now);
    }
    store::update(tx.db(), account, &run).await?;
    Ok(!run.status.is_finished() && run.next_at.is_some_and(|at| at <= now))
}

fn ended_step(input: &Settle, now: chrono::DateTime<chrono::Utc>) -> StepRecord {
    let Move { outcome, answer, error, uncertain, .. } = &input.moved;
    let open = matches!(outcome, Outcome::Retrying | Outcome::Waiting | Outcome::Pending);
    let answer = answer.as_ref().map(Value::to_string);
    StepRecord {
        outcome: *outcome,
        // A larger one is not there for later steps.
        answer: answer.filter(|answer| answer.len() <= MAX_ANSWER),
        error: error.clone(),
        uncertain: *uncertain,
        ended_at: (!open).then_some(now),
        ..input.step.clone()
    }
}

/// Moves the run to what comes next.
fn advance(run: &mut Record, input: &Settle, now: chrono::DateTime<chrono::Utc>) {
    let moved = &input.moved;
    run.renders = 0;
    run.attempts = input.step.attempts;
    run.max_attempts = input.max_attempts;
    run.failed_steps += i32::from(moved.forgiven);
    if !moved.error.is_empty() || run.failed_steps == 0 {
        run.error.clone_from(&moved.error);
    }
    run.step.clone_from(&input.step.step);
    match &moved.next {
        Next::Step(id) => {
            go(run, id, now);
            // It is rendered next, by this process.
            run.renders = 1;
        }
        Next::End => finish(run, final_status(run.failed_steps), now),
        Next::Later(status, at) => (run.status, run.next_at) = (*status, *at),
        Next::Fail => finish(run, Status::Failed, now),
    }
}

/// Makes a step the next one.
pub(crate) fn go(run: &mut Record, step: &str, now: chrono::DateTime<chrono::Utc>) {
    run.status = Status::Running;
    step.clone_into(&mut run.step);
    run.renders = 0;
    run.next_at = Some(now);
    run.updated_at = now;
}

/// Brings a run to its end. The step stays for those who look, and for a restart.
pub(crate) fn finish(run: &mut Record, status: Status, now: chrono::DateTime<chrono::Utc>) {
    run.status = status;
    run.next_at = None;
    run.finished_at = Some(now);
    run.updated_at = now;
    metrics::counter!("runs_finished_total", "status" => status.name()).increment(1);
}

async fn queue(
    tx: &mut Tx<'_>,
    run: Uuid,
    letter: &Letter,
    (post, name): (&Mailer, &String),
) -> Result<(), crate::Error> {
    let account = tx.account();
    let sender = post.sender(tx.db(), account, name, &letter.reply_to).await?;
    let boxes = |addresses: &[String]| addresses.iter().filter_map(|address| mailbox("", address)).collect();
    let mut mail = Mail::new(sender.from, boxes(&letter.to), letter.subject.clone());
    mail.cc = boxes(&letter.cc);
    mail.reply_to = sender.reply_to;
    mail.text = Some(letter.text.clone());
    mail.reference = format!("run:{run}");
    chassis_work::mail::queue(tx, &mail).await?;
    Ok(())
}

/// Ends a run that cannot go on for a reason that its author could not know, at the step that comes next. Never goes on.
pub(super) async fn give_up(job: &Job, loaded: &Loaded, step: &str, why: &str) -> Result<bool, Error> {
    tracing::error!(run = %loaded.run.id, why, "a run cannot go on");
    job.write(&(loaded.run.id, step.to_owned(), why.to_owned()), abandon).await?;
    Ok(false)
}

async fn abandon(tx: &mut Tx<'_>, (run, step, why): &(Uuid, String, String)) -> Result<(), crate::Error> {
    let (account, now) = (tx.account(), tx.now());
    if let Some(mut run) = store::find_locked(tx.db(), account, *run).await?
        && !run.status.is_finished()
    {
        run.error.clone_from(why);
        run.step.clone_from(step);
        run.renders = 0;
        finish(&mut run, Status::Failed, now);
        store::update(tx.db(), account, &run).await?;
    }
    Ok(())
}
