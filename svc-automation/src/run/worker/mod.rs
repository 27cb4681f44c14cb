//! Executes runs, step by step. The result of a step is stored before the next one starts, each write is fenced by the
//! lease of the account, and each call carries an idempotency key made of run and step. So when a process dies, another
//! one continues its runs, and no effect happens twice.

mod call;
mod loaded;
mod request;

use std::sync::Arc;

use call::{ServiceClient, StepCall};
use chassis_base::Error;
use chassis_service::Runtime;
use chassis_work::Worker;
use chassis_work::mail::Mailer;
use chassis_work::worker::{Due, Job};
use chrono::{DateTime, Utc};
use loaded::LoadedRun;
use serde_json::Value;
use tokio::sync::RwLock;
use uuid::Uuid;

use super::operations::step as writes;
use super::operations::step::{Abandon, Begin, Known, OutgoingMail, Settle};
use super::prepare::{LocalTime, Prepared, prepare};
use super::rules::{self, Failure, IDEMPOTENCY_WINDOW, StepRef, StepResult};
use super::{Outcome, StepRecord, store};
use crate::definition::Kind;
use crate::definition::graph::{Graph, Node};
use crate::dispatcher::{self, Excluded, Item, Limits, WorkQueue};
use crate::egress::Egress;
use crate::template::Engine;

/// Runs of one account at the same time, of one flow or several.
const LIMITS: Limits = Limits { per_account: 16, per_group: 16 };
/// How often a process may end while it renders the same step, before the run is failed.
const MAX_RENDERS: i32 = 2;
const RENDERS_USED_UP: &str = "the process that rendered this step ended twice while it did; the step is not \
                               tried again, because it may be the cause";

/// The worker that executes all runs.
pub(crate) fn worker(runtime: &Runtime, egress: Egress) -> Worker {
    let due = Due::new("run work", "work.next_at is not null", "work.next_at");
    let services = ServiceClient { peers: runtime.peers.clone(), tokens: runtime.tokens.clone() };
    let executor = Executor {
        services,
        mailer: runtime.mailer.clone(),
        egress,
        engine: Engine::default(),
        rendering: RwLock::new(()),
    };
    dispatcher::worker("runs", due, LIMITS, Arc::new(executor))
}

struct Executor {
    services: ServiceClient,
    mailer: Mailer,
    egress: Egress,
    engine: Engine,
    /// Held for reading while a step is rendered. A run whose rendering may have ended a process before holds it for
    /// writing, so that it renders alone: should the process end again, no other run is blamed.
    rendering: RwLock<()>,
}

#[tonic::async_trait]
impl WorkQueue for Executor {
    async fn due(&self, job: &Job, excluded: &Excluded, limit: i64) -> Result<Vec<Item>, Error> {
        let due = job
            .db()
            .read(async |connection| {
                store::find_due(connection, job.account_id(), job.now(), excluded, limit).await
            })
            .await?;
        Ok(due)
    }

    /// Takes step after step until the run waits or has ended.
    async fn perform(&self, job: &Job, id: Uuid) -> Result<(), Error> {
        let mut is_render_counted = false;
        while let Some(loaded) = LoadedRun::load(job, id).await? {
            if !self.take_step(job, &loaded, is_render_counted).await? {
                break;
            }
            // The transaction that ended the step has counted the rendering of the next one.
            is_render_counted = true;
        }
        Ok(())
    }
}

impl Executor {
    /// Takes one step; tells whether the next one is due now.
    async fn take_step(&self, job: &Job, loaded: &LoadedRun, is_render_counted: bool) -> Result<bool, Error> {
        let at = loaded.run.step.as_str();
        let Some(definition) = &loaded.definition else {
            return abandon(job, loaded, at, "the definition of the flow cannot be read any more").await;
        };
        let graph = Graph::of(definition);
        let current = Some(at).filter(|step| !step.is_empty()).or(graph.first());
        let node = current.and_then(|id| graph.find(id));
        let Some((node, kind)) = node.and_then(|node| Some((node, node.step.kind()?))) else {
            return abandon(job, loaded, at, "the step that comes next is not in the flow").await;
        };
        let step = StepRef { graph: &graph, node, kind };
        match loaded.find_step(node).map(|row| row.outcome) {
            // A step that waited is due again: its wait is over, or its time to be approved.
            Some(Outcome::Waiting) => {
                self.settle(job, loaded, step, StepResult::Done(Value::Null), None).await
            }
            Some(Outcome::Pending) => self.settle(job, loaded, step, StepResult::Expired, None).await,
            None | Some(Outcome::Running | Outcome::Retrying) => {
                if !is_render_counted && loaded.run.renders >= MAX_RENDERS {
                    return abandon(job, loaded, &node.step.id, RENDERS_USED_UP).await;
                }
                self.attempt(job, loaded, step, is_render_counted).await
            }
            Some(_) => abandon(job, loaded, at, "the step that comes next was taken before").await,
        }
    }

    async fn attempt(
        &self,
        job: &Job,
        loaded: &LoadedRun,
        step: StepRef<'_>,
        is_render_counted: bool,
    ) -> Result<bool, Error> {
        let row = loaded.find_step(step.node);
        let stored = row.and_then(|row| row.input.as_deref());
        let stored = stored.and_then(|input| serde_json::from_str(input).ok());
        let prepared = match (no_further_attempt(row, step.node, loaded.now), step.kind, stored) {
            (Some(failure), ..) => Err(failure),
            // A request that may have been sent is never rendered anew: its idempotency key stands for that content.
            (None, Kind::Call(_), Some(input)) => Ok(Prepared::Call(input)),
            (None, Kind::Http(_), Some(input)) => Ok(Prepared::Http(input)),
            _ => {
                let rendered = self.render(job, loaded, step.kind, is_render_counted).await?;
                rendered.map_err(Failure::permanent)
            }
        };
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(failure) => {
                return self.settle(job, loaded, step, StepResult::Failed(failure), None).await;
            }
        };
        let result = match &prepared {
            Prepared::Call(_) | Prepared::Http(_) => return self.request(job, loaded, step, &prepared).await,
            Prepared::Mail(_) => StepResult::Done(Value::Null),
            Prepared::When(holds) => StepResult::Branch(*holds),
            Prepared::Wait(until) => StepResult::Wait(*until),
            Prepared::Approve { until, .. } => StepResult::WaitForApproval(*until),
        };
        self.settle(job, loaded, step, result, Some(prepared)).await
    }

    /// Renders a step. The rendering is counted before it starts, and a run whose rendering may have ended a process
    /// before renders alone. When that one survives, the count is taken back before anything else can end the process.
    async fn render(
        &self,
        job: &Job,
        loaded: &LoadedRun,
        kind: Kind<'_>,
        is_render_counted: bool,
    ) -> Result<Result<Prepared, String>, Error> {
        let is_suspect = !is_render_counted && loaded.run.renders > 0;
        let _exclusive = if is_suspect { Some(self.rendering.write().await) } else { None };
        if !is_render_counted {
            job.write(&loaded.run.id, writes::count_render).await?;
        }
        let _shared = if is_suspect { None } else { Some(self.rendering.read().await) };
        let time = LocalTime { now: loaded.now, zone: job.account().timezone };
        let prepared = prepare(kind, &loaded.scope(job), time, &self.engine);
        if is_suspect {
            // Without the lease: even if that was lost meanwhile, this rendering did not end the process.
            job.db().record(job.account(), &loaded.run.id, writes::uncount_render).await?;
        }
        Ok(prepared)
    }

    /// A call or an HTTP request: recorded before it is sent, and its result after.
    async fn request(
        &self,
        job: &Job,
        loaded: &LoadedRun,
        step: StepRef<'_>,
        prepared: &Prepared,
    ) -> Result<bool, Error> {
        let definition = step.definition();
        let mut row = loaded.step_or_new(step.node, step.kind);
        row.attempts += 1;
        row.outcome = Outcome::Running;
        row.input = prepared.input().map(|input| input.to_string());
        let max_attempts = count(rules::max_attempts(definition));
        let begin = Begin { known: loaded.known(), step: row, max_attempts };
        let Some(version) = job.write(&begin, writes::begin).await? else { return Ok(false) };
        let timeout = rules::timeout(definition);
        let sent = match (step.kind, prepared) {
            (Kind::Call(call), Prepared::Call(input)) => {
                let (run, scopes) = (&loaded.run, loaded.scopes.as_slice());
                let request = StepCall { run, step: &definition.id, call, input, scopes, timeout };
                self.services.call(job, request).await
            }
            (_, Prepared::Http(input)) => {
                request::send(&self.egress, job, &loaded.run, &definition.id, input, timeout).await?
            }
            _ => Err(Failure::permanent("a step of another kind")),
        };
        let result = sent.map_or_else(StepResult::Failed, StepResult::Done);
        let attempts = begin.step.attempts.unsigned_abs();
        let transition = rules::transition(result, step, attempts, job.now());
        // Only the step that is settled has changed with that version.
        let known = Known { version, ..begin.known };
        let settle = Settle { known, step: begin.step, transition, max_attempts, mail: None };
        job.write(&settle, writes::settle).await
    }

    /// Records the result of a step that sends no request.
    async fn settle(
        &self,
        job: &Job,
        loaded: &LoadedRun,
        step: StepRef<'_>,
        result: StepResult,
        prepared: Option<Prepared>,
    ) -> Result<bool, Error> {
        let mut row = loaded.step_or_new(step.node, step.kind);
        row.attempts = row.attempts.max(1);
        row.input = prepared.as_ref().and_then(Prepared::input).map(|input| input.to_string()).or(row.input);
        let mail = match prepared {
            Some(Prepared::Mail(mail)) => Some(OutgoingMail {
                mail,
                mailer: self.mailer.clone(),
                sender_name: loaded.account_name.clone(),
            }),
            _ => None,
        };
        let transition = rules::transition(result, step, row.attempts.unsigned_abs(), loaded.now);
        let max_attempts = count(rules::max_attempts(step.definition()));
        let settle = Settle { known: loaded.known(), step: row, transition, max_attempts, mail };
        job.write(&settle, writes::settle).await
    }
}

fn count(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Ends a run that cannot continue for a reason that its author cannot know; never continues.
async fn abandon(job: &Job, loaded: &LoadedRun, step: &str, reason: &str) -> Result<bool, Error> {
    tracing::error!(run = %loaded.run.id, reason, "run abandoned");
    let abandon = Abandon { known: loaded.known(), step: step.to_owned(), reason: reason.to_owned() };
    job.write(&abandon, writes::abandon).await?;
    Ok(false)
}

/// Why a step that was started before must not be attempted again, if so.
fn no_further_attempt(row: Option<&StepRecord>, node: Node<'_>, now: DateTime<Utc>) -> Option<Failure> {
    let row = row?;
    let may_have_effect = row.outcome == Outcome::Running || row.uncertain;
    if may_have_effect && now - row.started_at > IDEMPOTENCY_WINDOW {
        let error = "it is not known whether the last attempt had its effect, and it is too late to repeat it \
                     safely; check that before you restart the run from here";
        return Some(Failure::uncertain_permanent(error));
    }
    let is_used_up =
        row.outcome == Outcome::Running && row.attempts.unsigned_abs() >= rules::max_attempts(node.step);
    is_used_up.then(|| Failure::uncertain_permanent("the process that took this step ended each time"))
}
