//! Takes the steps of runs. What a step came to is stored before the next one begins, each write proves that the work is
//! still ours, and each call carries a key that stands for the run and the step: whenever a process dies, another one
//! takes up its runs where they stand, and nothing is done twice.

mod call;
mod request;
pub(crate) mod writes;

use std::sync::Arc;

use chassis_base::Error;
use chassis_rpc::peer::Peers;
use chassis_rpc::token::Tokens;
use chassis_service::Runtime;
use chassis_work::Worker;
use chassis_work::mail::Mailer;
use chassis_work::worker::{Due, Job};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use tokio::sync::RwLock;
use uuid::Uuid;
use writes::{Begin, Settle};

use super::prepare::{Known, Prepared, prepare, seen};
use super::rules::{self, CERTAIN_FOR, Ended, Failure};
use super::{Outcome, Record, StepRecord, store};
use crate::flow::definition::{Definition, Kind};
use crate::flow::graph::{Graph, Node};
use crate::flow::store as flows;
use crate::outside::Outside;
use crate::pump::{self, Begun, Limits, Thing, Work};
use crate::template::Engine;

/// Runs of one account at the same time, of one flow or several.
const LIMITS: Limits = Limits { at_once: 16, per_group: 16 };
/// So often a run may end its process while it is rendered.
const MAX_RENDERS: i32 = 2;
const RENDERS_USED_UP: &str = "the process that rendered this step ended twice while it did; the step is not tried \
                               again, as it may be what ended it";

/// The worker that takes the steps of all runs.
pub(crate) fn worker(runtime: &Runtime, outside: Outside) -> Worker {
    let due = Due::new("run work", "work.next_at is not null", "work.next_at");
    let executor = Executor {
        peers: runtime.peers.clone(),
        tokens: runtime.tokens.clone(),
        post: runtime.mailer.clone(),
        outside,
        engine: Engine::default(),
        rendering: RwLock::new(()),
    };
    pump::worker("runs", due, LIMITS, Arc::new(executor))
}

pub(crate) struct Executor {
    peers: Peers,
    tokens: Tokens,
    post: Mailer,
    outside: Outside,
    engine: Engine,
    /// Held to render, alone by a run that may have ended its process before: should that end again, no other run is
    /// blamed for it.
    rendering: RwLock<()>,
}

#[tonic::async_trait]
impl Work for Executor {
    async fn due(&self, job: &Job, begun: &Begun, most: i64) -> Result<Vec<Thing>, Error> {
        let due = job
            .db()
            .read(async |connection| {
                store::find_due(connection, job.account_id(), job.now(), (begun, most)).await
            })
            .await?;
        Ok(due.into_iter().map(|(id, flow)| Thing { id, group: flow, probe: false }).collect())
    }

    /// Goes from step to step until the run waits or has come to its end.
    async fn perform(&self, job: &Job, id: Uuid) -> Result<(), Error> {
        let mut counted = false;
        while let Some(loaded) = load(job, id).await? {
            if !self.step(job, &loaded, counted).await? {
                break;
            }
            // What has come to its end has counted the rendering of what comes next.
            counted = true;
        }
        Ok(())
    }
}

/// A run with everything that its next step needs.
struct Loaded {
    run: Record,
    steps: Vec<StepRecord>,
    definition: Option<Definition>,
    /// What the flow may do.
    scopes: Vec<String>,
    event: Value,
    account_name: String,
    now: DateTime<Utc>,
}

/// `None` when there is nothing to do now: it has ended, waits, or is gone.
async fn load(job: &Job, id: Uuid) -> Result<Option<Loaded>, Error> {
    let (account, now) = (job.account_id(), job.now());
    let mut connection = job.db().acquire().await?;
    let found = store::find(&mut connection, account, id).await?;
    let Some(run) = found.filter(|run| run.next_at.is_some_and(|at| at <= now)) else {
        connection.done();
        return Ok(None);
    };
    let steps = store::list_steps(&mut connection, account, id).await?;
    let version = flows::find_version(&mut connection, account, run.flow_id, run.flow_version).await?;
    let account_name = store::account_name(&mut connection, account).await?;
    connection.done();
    let (definition, scopes) = version.map_or_else(Default::default, |version| {
        (serde_json::from_str(&version.definition).ok(), version.scopes)
    });
    let event = serde_json::from_str(&run.event).unwrap_or_default();
    Ok(Some(Loaded { run, steps, definition, scopes, event, account_name, now }))
}

/// A step in its flow.
type Place<'a> = (&'a Graph<'a>, Node<'a>, Kind<'a>);

impl Loaded {
    fn row(&self, node: Node<'_>) -> Option<&StepRecord> {
        self.steps.iter().find(|step| step.step == node.step.id)
    }

    /// The row of a step: as it is, or as it begins.
    fn step(&self, node: Node<'_>, kind: Kind<'_>) -> StepRecord {
        self.row(node).cloned().unwrap_or_else(|| StepRecord {
            step: node.step.id.clone(),
            ordinal: i32::try_from(self.steps.len()).unwrap_or(i32::MAX),
            kind: kind.name().to_owned(),
            outcome: Outcome::Running,
            attempts: 0,
            input: None,
            answer: None,
            error: String::new(),
            uncertain: false,
            decided_by: String::new(),
            reason: String::new(),
            started_at: self.now,
            ended_at: None,
        })
    }

    fn scope(&self, job: &Job) -> Value {
        let ended = self.steps.iter().filter(|step| step.ended_at.is_some());
        let steps: Map<String, Value> = ended
            .map(|step| {
                let answer = step.answer.as_deref().and_then(|answer| serde_json::from_str(answer).ok());
                (step.step.clone(), seen(step.outcome.name(), &answer.unwrap_or_default(), &step.error))
            })
            .collect();
        let known = Known {
            event: &self.event,
            steps,
            account: (job.account(), &self.account_name),
            run: (self.run.id.to_string(), &self.run.flow_name),
            now: self.now,
        };
        known.scope()
    }
}

impl Executor {
    /// Takes one step; tells whether to go on at once. `counted` says that its rendering was counted.
    async fn step(&self, job: &Job, loaded: &Loaded, counted: bool) -> Result<bool, Error> {
        let at = loaded.run.step.as_str();
        let Some(definition) = &loaded.definition else {
            return writes::give_up(job, loaded, at, "the definition of the flow cannot be read any more")
                .await;
        };
        let graph = Graph::of(definition);
        let current = Some(loaded.run.step.as_str()).filter(|step| !step.is_empty()).or(graph.first());
        let node = current.and_then(|id| graph.find(id));
        let Some((node, kind)) = node.and_then(|node| Some((node, node.step.kind()?))) else {
            return writes::give_up(job, loaded, at, "the step that comes next is not in the flow").await;
        };
        let place = (&graph, node, kind);
        match loaded.row(node).map(|row| row.outcome) {
            Some(Outcome::Waiting) => self.note(job, loaded, place, Ended::Done(Value::Null), None).await,
            Some(Outcome::Pending) => self.note(job, loaded, place, Ended::Expired, None).await,
            None | Some(Outcome::Running | Outcome::Retrying) => {
                if !counted && loaded.run.renders >= MAX_RENDERS {
                    return writes::give_up(job, loaded, &node.step.id, RENDERS_USED_UP).await;
                }
                self.attempt(job, loaded, place, counted).await
            }
            Some(_) => writes::give_up(job, loaded, at, "the step that comes next was taken before").await,
        }
    }

    async fn attempt(
        &self,
        job: &Job,
        loaded: &Loaded,
        place: Place<'_>,
        counted: bool,
    ) -> Result<bool, Error> {
        let (_, node, kind) = place;
        let row = loaded.row(node);
        let kept =
            row.and_then(|row| row.input.as_deref()).and_then(|input| serde_json::from_str(input).ok());
        let prepared = match (hopeless(row, node, loaded.now), kind, kept) {
            (Some(failure), ..) => Err(failure),
            // Once it may have been sent it is never made anew: the key of a call stands for what it sends.
            (None, Kind::Call(_), Some(input)) => Ok(Prepared::Call(input)),
            (None, Kind::Http(_), Some(input)) => Ok(Prepared::Http(input)),
            _ => self.render(job, loaded, kind, counted).await?.map_err(Failure::lasting),
        };
        let ended = match &prepared {
            Ok(Prepared::Call(_) | Prepared::Http(_)) => None,
            Ok(Prepared::Mail(_)) => Some(Ended::Done(Value::Null)),
            Ok(Prepared::When(holds)) => Some(Ended::Branch(*holds)),
            Ok(Prepared::Wait(until)) => Some(Ended::Wait(*until)),
            Ok(Prepared::Approve(_, limit)) => Some(Ended::Ask(*limit)),
            Err(failure) => Some(Ended::Failed(failure.clone())),
        };
        match (ended, prepared) {
            (None, Ok(prepared)) => self.effect(job, loaded, place, &prepared).await,
            (Some(ended), prepared) => self.note(job, loaded, place, ended, prepared.ok()).await,
            (None, Err(_)) => Ok(false),
        }
    }

    /// Renders a step; counted before it is, and alone if this run may have ended its process before. If it does not, that
    /// is noted at once: what ends the process later, or lets another one take over, is not its fault.
    async fn render(
        &self,
        job: &Job,
        loaded: &Loaded,
        kind: Kind<'_>,
        counted: bool,
    ) -> Result<Result<Prepared, String>, Error> {
        let is_suspect = !counted && loaded.run.renders > 0;
        let _alone = if is_suspect { Some(self.rendering.write().await) } else { None };
        if !counted {
            job.write(&loaded.run.id, writes::count_render).await?;
        }
        let _beside = if is_suspect { None } else { Some(self.rendering.read().await) };
        let prepared = prepare(kind, &loaded.scope(job), (loaded.now, job.account().timezone), &self.engine);
        if is_suspect {
            job.db().record(job.account(), &loaded.run.id, writes::outlive_render).await?;
        }
        Ok(prepared)
    }

    /// A call or a request: noted before it is made, and what came of it after.
    async fn effect(
        &self,
        job: &Job,
        loaded: &Loaded,
        (graph, node, kind): Place<'_>,
        prepared: &Prepared,
    ) -> Result<bool, Error> {
        let begin = Begin::of(loaded, (node, kind), prepared);
        if !job.write(&begin, writes::begin).await? {
            return Ok(false);
        }
        let timeout = rules::timeout(node.step);
        let made = match (kind, prepared) {
            (Kind::Call(call), Prepared::Call(input)) => {
                self.call(job, loaded, (&node.step.id, call, input), timeout).await
            }
            (_, Prepared::Http(input)) => {
                self.request(job, &loaded.run, (&node.step.id, input), timeout).await?
            }
            _ => Err(Failure::lasting("a step of another kind")),
        };
        let ended = made.map_or_else(Ended::Failed, Ended::Done);
        let attempts = begin.step.attempts.unsigned_abs();
        let moved = rules::after(ended, (graph, node), attempts, job.now());
        let settle = Settle {
            run: loaded.run.id,
            max_attempts: begin.max_attempts,
            step: begin.step,
            moved,
            letter: None,
        };
        job.write(&settle, writes::settle).await
    }

    /// Notes what a step came to that has no effect outside of this service.
    async fn note(
        &self,
        job: &Job,
        loaded: &Loaded,
        (graph, node, kind): Place<'_>,
        ended: Ended,
        prepared: Option<Prepared>,
    ) -> Result<bool, Error> {
        let mut step = loaded.step(node, kind);
        step.attempts = step.attempts.max(1);
        step.input =
            prepared.as_ref().and_then(Prepared::input).map(|input| input.to_string()).or(step.input);
        let letter = match prepared {
            Some(Prepared::Mail(letter)) => Some((letter, self.post.clone(), loaded.account_name.clone())),
            _ => None,
        };
        let moved = rules::after(ended, (graph, node), step.attempts.unsigned_abs(), loaded.now);
        let max_attempts = writes::count(rules::max_attempts(node.step));
        let settle = Settle { run: loaded.run.id, step, moved, max_attempts, letter };
        job.write(&settle, writes::settle).await
    }
}

/// Why a step that was begun before is not tried again, if so.
fn hopeless(row: Option<&StepRecord>, node: Node<'_>, now: DateTime<Utc>) -> Option<Failure> {
    let row = row?;
    let open = row.outcome == Outcome::Running || row.uncertain;
    if open && now - row.started_at > CERTAIN_FOR {
        let error = "it is not known whether the last try had its effect, and it is too late to ask; look yourself \
                     before you let the run go on from here";
        return Some(Failure::unknown(error));
    }
    let used_up =
        row.outcome == Outcome::Running && row.attempts.unsigned_abs() >= rules::max_attempts(node.step);
    used_up.then(|| Failure::unknown("the process that took this step ended each time"))
}
