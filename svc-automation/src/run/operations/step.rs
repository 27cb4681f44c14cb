//! Writes of the worker: what it records before and after an attempt of a step. They run under the lease of the account,
//! so a process that has lost it writes nothing.

use chassis_data::Tx;
use chassis_work::mail::{Mail, Mailer, mailbox};
use chrono::{DateTime, Utc};
use proto::automation::RunStep;
use serde_json::Value;
use uuid::Uuid;

use super::save;
use crate::definition::StepKind;
use crate::error::Error;
use crate::run::prepare::PreparedMail;
use crate::run::rules::{Next, Transition, final_status};
use crate::run::{Outcome, Record, Status, StepRecord, message, store};

/// Bytes of an answer that later steps can use.
const MAX_ANSWER: usize = 256 * 1024;

/// What the worker knows of a run that it writes to. The log shows a run with all of its steps, and this saves a query for
/// them.
pub(in crate::run) struct Known {
    pub run: Uuid,
    /// The version that the run had with these steps.
    pub version: i64,
    pub steps: Vec<RunStep>,
}

impl Known {
    /// The steps of a run, which is locked, with the one that this transaction changes.
    async fn steps_with(
        &self,
        tx: &mut Tx<'_>,
        run: &Record,
        changed: Option<&StepRecord>,
    ) -> Result<Vec<RunStep>, Error> {
        let account = tx.account();
        let mut steps = if run.version == self.version {
            self.steps.clone()
        } else {
            // Somebody has changed the run since.
            message::steps(&store::list_steps(tx.db(), account, run.id).await?)
        };
        if let Some(changed) = changed {
            replace_or_add(&mut steps, changed.into());
        }
        Ok(steps)
    }
}

/// A step that has just begun is the last one.
fn replace_or_add(steps: &mut Vec<RunStep>, changed: RunStep) {
    match steps.iter_mut().find(|step| step.id == changed.id) {
        Some(step) => *step = changed,
        None => steps.push(changed),
    }
}

/// Whether the run is still at this step. If not, somebody has moved it since it was read, and that counts.
fn is_at(run: &Record, step: &StepRecord) -> bool {
    run.step == step.step || (run.step.is_empty() && step.ordinal == 0)
}

/// Counts a rendering before it starts, which is no change of what the run shows. Should it end the process, the count
/// stays and the next owner knows.
pub(in crate::run) async fn count_render(tx: &mut Tx<'_>, id: &Uuid) -> Result<(), Error> {
    let account = tx.account();
    if let Some(mut run) = store::find_locked(tx.db(), account, *id).await? {
        run.renders += 1;
        store::update(tx.db(), account, &run).await?;
    }
    Ok(())
}

/// Takes a rendering off the count again, because the process has survived it.
pub(in crate::run) async fn uncount_render(tx: &mut Tx<'_>, id: &Uuid) -> Result<(), Error> {
    let account = tx.account();
    let found = store::find_locked(tx.db(), account, *id).await?;
    // Moving a run resets the count, so a count of one belongs to a later rendering.
    if let Some(mut run) = found.filter(|run| run.renders > 1) {
        run.renders -= 1;
        store::update(tx.db(), account, &run).await?;
    }
    Ok(())
}

/// An attempt that is about to start.
pub(in crate::run) struct Begin {
    pub known: Known,
    pub step: StepRecord,
    pub max_attempts: i32,
}

/// Records that an attempt starts; returns the version of the run with it, or `None` if it must not start. Committed before
/// the request is sent: if the process dies in between, the next owner finds the step `running` and repeats the request
/// with the same key and content.
pub(in crate::run) async fn begin(tx: &mut Tx<'_>, input: &Begin) -> Result<Option<i64>, Error> {
    let (account, now) = (tx.account(), tx.now());
    let found = store::find_locked(tx.db(), account, input.known.run).await?;
    let Some(mut run) = found.filter(|run| !run.status.is_finished() && is_at(run, &input.step)) else {
        return Ok(None);
    };
    record_start(&mut run, now);
    run.status = Status::Running;
    run.step.clone_from(&input.step.step);
    run.attempts = input.step.attempts;
    run.max_attempts = input.max_attempts;
    run.renders = 0;
    // The run stays due, so that the next owner continues it without a delay.
    run.next_at = Some(now);
    store::put_step(tx.db(), account, run.id, &input.step).await?;
    let steps = input.known.steps_with(tx, &run, Some(&input.step)).await?;
    let shown = save(tx, run, steps).await?;
    Ok(shown.meta.map(|meta| meta.version))
}

fn record_start(run: &mut Record, now: DateTime<Utc>) {
    if run.started_at.is_none() {
        run.started_at = Some(now);
        let lag = (now - run.created_at).as_seconds_f64().max(0.0);
        metrics::histogram!("run_start_lag_seconds").record(lag);
    }
}

/// The end of an attempt.
pub(in crate::run) struct Settle {
    pub known: Known,
    /// The step as it was during the attempt.
    pub step: StepRecord,
    pub transition: Transition,
    pub max_attempts: i32,
    pub mail: Option<OutgoingMail>,
}

/// A mail that is queued in the transaction that ends its step.
pub(in crate::run) struct OutgoingMail {
    pub mail: PreparedMail,
    pub mailer: Mailer,
    pub sender_name: String,
}

/// Records the end of an attempt and moves the run on; tells whether its next step is due now.
pub(in crate::run) async fn settle(tx: &mut Tx<'_>, input: &Settle) -> Result<bool, Error> {
    let (account, now) = (tx.account(), tx.now());
    let found = store::find_locked(tx.db(), account, input.known.run).await?;
    let Some(mut run) = found.filter(|run| is_at(run, &input.step)) else { return Ok(false) };
    // Of a run that was cancelled meanwhile, the result of a request that was sent is still recorded; nothing follows.
    let is_cancelled = run.status.is_finished();
    let is_request = matches!(input.step.kind, StepKind::Call | StepKind::Http);
    if is_cancelled && !is_request {
        return Ok(false);
    }
    if let Some(outgoing) = &input.mail {
        tx.caused_at(run.depth.unsigned_abs());
        queue_mail(tx, run.id, outgoing).await?;
    }
    let step = step_after(input, now);
    store::put_step(tx.db(), account, run.id, &step).await?;
    run.actions_done += i32::from(input.transition.had_effect);
    if !is_cancelled {
        record_start(&mut run, now);
        advance(&mut run, input, now);
    }
    let is_next_due = !run.status.is_finished() && run.next_at.is_some_and(|at| at <= now);
    let steps = input.known.steps_with(tx, &run, Some(&step)).await?;
    save(tx, run, steps).await?;
    Ok(is_next_due)
}

fn step_after(input: &Settle, now: DateTime<Utc>) -> StepRecord {
    let Transition { outcome, answer, error, is_uncertain, .. } = &input.transition;
    let is_open = matches!(outcome, Outcome::Retrying | Outcome::Waiting | Outcome::Pending);
    let answer = answer.as_ref().map(Value::to_string);
    StepRecord {
        outcome: *outcome,
        // A larger answer is not stored, and later steps cannot use it.
        answer: answer.filter(|answer| answer.len() <= MAX_ANSWER),
        error: error.clone(),
        uncertain: *is_uncertain,
        ended_at: (!is_open).then_some(now),
        ..input.step.clone()
    }
}

/// Moves the run to what comes next.
fn advance(run: &mut Record, input: &Settle, now: DateTime<Utc>) {
    let transition = &input.transition;
    run.renders = 0;
    run.attempts = input.step.attempts;
    run.max_attempts = input.max_attempts;
    run.failed_steps += i32::from(transition.is_ignored_failure);
    if !transition.error.is_empty() || run.failed_steps == 0 {
        run.error.clone_from(&transition.error);
    }
    run.step.clone_from(&input.step.step);
    match &transition.next {
        Next::Step(id) => {
            run.go_to(id, now);
            // This process renders the step next. Counting it here saves a transaction for each step.
            run.renders = 1;
        }
        Next::End => run.finish(final_status(run.failed_steps), now),
        Next::Later(status, at) => {
            run.status = *status;
            run.next_at = *at;
        }
        Next::Fail => run.finish(Status::Failed, now),
    }
}

async fn queue_mail(tx: &mut Tx<'_>, run: Uuid, outgoing: &OutgoingMail) -> Result<(), Error> {
    let account = tx.account();
    let OutgoingMail { mail: prepared, mailer, sender_name } = outgoing;
    let sender = mailer.sender(tx.db(), account, sender_name, &prepared.reply_to).await?;
    let boxes = |addresses: &[String]| addresses.iter().filter_map(|address| mailbox("", address)).collect();
    let mut mail = Mail::new(sender.from, boxes(&prepared.to), prepared.subject.clone());
    mail.cc = boxes(&prepared.cc);
    mail.reply_to = sender.reply_to;
    mail.text = Some(prepared.text.clone());
    mail.reference = format!("run:{run}");
    chassis_work::mail::queue(tx, &mail).await?;
    Ok(())
}

/// A run that cannot continue, for a reason that is not in its definition.
pub(in crate::run) struct Abandon {
    pub known: Known,
    /// The step that a restart continues from.
    pub step: String,
    pub reason: String,
}

/// Ends a run that cannot continue.
pub(in crate::run) async fn abandon(tx: &mut Tx<'_>, input: &Abandon) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    if let Some(mut run) = store::find_locked(tx.db(), account, input.known.run).await?
        && !run.status.is_finished()
    {
        run.error.clone_from(&input.reason);
        run.step.clone_from(&input.step);
        run.renders = 0;
        run.finish(Status::Failed, now);
        let steps = input.known.steps_with(tx, &run, None).await?;
        save(tx, run, steps).await?;
    }
    Ok(())
}
