//! A run as the worker reads it: with everything that its next step needs.

use chassis_base::Error;
use chassis_work::worker::Job;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::definition::graph::Node;
use crate::definition::{Definition, Kind, Version, store as definitions};
use crate::run::operations::step::Known;
use crate::run::prepare::{TemplateContext, step_result};
use crate::run::{Outcome, Record, StepRecord, message, store};

pub(super) struct LoadedRun {
    pub run: Record,
    pub steps: Vec<StepRecord>,
    /// `None` when the stored definition cannot be read.
    pub definition: Option<Definition>,
    /// What the flow may do.
    pub scopes: Vec<String>,
    pub event: Value,
    pub account_name: String,
    pub now: DateTime<Utc>,
}

impl LoadedRun {
    /// `None` when the run is not due: it has ended, waits, or was deleted.
    pub(super) async fn load(job: &Job, id: Uuid) -> Result<Option<Self>, Error> {
        let (account, now) = (job.account_id(), job.now());
        let read = async |connection: &mut PgConnection| {
            let found = store::find(connection, account, id).await?;
            let Some(run) = found.filter(|run| run.next_at.is_some_and(|at| at <= now)) else {
                return Ok(None);
            };
            let steps = store::list_steps(connection, account, id).await?;
            let version = definitions::find_version(connection, account, run.flow_id, run.flow_version);
            let version = version.await?;
            let account_name = store::account_name(connection, account).await?;
            let definition = version.as_ref().and_then(Version::parse);
            let scopes = version.map(|version| version.scopes).unwrap_or_default();
            let event = serde_json::from_str(&run.event).unwrap_or_default();
            Ok(Some(Self { run, steps, definition, scopes, event, account_name, now }))
        };
        job.db().read(read).await
    }

    /// What the writes of the worker need of it.
    pub(super) fn known(&self) -> Known {
        Known { run: self.run.id, version: self.run.version, steps: message::steps(&self.steps) }
    }

    /// The row of a step that has started.
    pub(super) fn find_step(&self, node: Node<'_>) -> Option<&StepRecord> {
        self.steps.iter().find(|step| step.step == node.step.id)
    }

    /// The row of a step: the stored one, or a new one.
    pub(super) fn step_or_new(&self, node: Node<'_>, kind: Kind<'_>) -> StepRecord {
        self.find_step(node).cloned().unwrap_or_else(|| StepRecord {
            step: node.step.id.clone(),
            ordinal: i32::try_from(self.steps.len()).unwrap_or(i32::MAX),
            kind: kind.step_kind(),
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

    /// The values that templates of the next step can use.
    pub(super) fn scope(&self, job: &Job) -> Value {
        let ended = self.steps.iter().filter(|step| step.ended_at.is_some());
        let steps: Map<String, Value> = ended
            .map(|step| {
                let answer = step.answer.as_deref().and_then(|answer| serde_json::from_str(answer).ok());
                let result = step_result(step.outcome.name(), &answer.unwrap_or_default(), &step.error);
                (step.step.clone(), result)
            })
            .collect();
        let context = TemplateContext {
            event: &self.event,
            steps,
            account: job.account(),
            account_name: &self.account_name,
            run_id: self.run.id.to_string(),
            flow_name: &self.run.flow_name,
            now: self.now,
        };
        context.scope()
    }
}
