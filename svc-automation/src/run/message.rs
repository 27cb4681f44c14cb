//! Records as the messages of the contract. Apart from `mod.rs`, which would be too long with them.

use chassis_base::time::timestamp;
use proto::automation::{Run, RunMeta, RunStep, TriggeredRun, WebhookRun};

use super::{Record, StartedRun, StepRecord};

impl Record {
    /// The whole run, as its GET and the log show it.
    pub(super) fn with_steps(self, steps: Vec<RunStep>) -> Run {
        let meta = RunMeta {
            entity_id: self.entity_id,
            event_id: self.event_id.map(|id| id.to_string()).unwrap_or_default(),
            flow_version: self.flow_version,
            depth: self.depth,
            started_at: self.started_at.map(timestamp),
            finished_at: self.finished_at.map(timestamp),
            steps,
            version: self.version,
            updated_at: Some(timestamp(self.updated_at)),
        };
        Run {
            id: self.id.to_string(),
            flow_id: self.flow_id.to_string(),
            flow_name: self.flow_name,
            status: self.status.name().to_owned(),
            trigger_type: proto::automation::TriggerType::from(self.trigger_type).into(),
            trigger_key: self.trigger_key,
            entity_type: self.entity_type,
            attempts: self.attempts,
            max_attempts: self.max_attempts,
            actions_done: self.actions_done,
            error: self.error,
            created_at: Some(timestamp(self.created_at)),
            updated_at: Some(timestamp(self.updated_at)),
            next_attempt_at: self.next_at.filter(|_| self.status.is_waiting()).map(timestamp),
            meta: Some(meta),
        }
    }
}

/// Without its steps: as lists show it, and whole before its first step.
impl From<Record> for Run {
    fn from(run: Record) -> Self {
        run.with_steps(Vec::new())
    }
}

pub(super) fn steps(records: &[StepRecord]) -> Vec<RunStep> {
    records.iter().map(RunStep::from).collect()
}

impl From<&StepRecord> for RunStep {
    fn from(step: &StepRecord) -> Self {
        Self {
            id: step.step.clone(),
            kind: step.kind.name().to_owned(),
            outcome: step.outcome.name().to_owned(),
            attempts: step.attempts,
            started_at: Some(timestamp(step.started_at)),
            ended_at: step.ended_at.map(timestamp),
            error: step.error.clone(),
            decided_by: step.decided_by.clone(),
            reason: step.reason.clone(),
        }
    }
}

impl From<Record> for StartedRun {
    fn from(run: Record) -> Self {
        Self { flow_id: run.flow_id, run_id: run.id, status: run.status }
    }
}

impl From<StartedRun> for TriggeredRun {
    fn from(run: StartedRun) -> Self {
        Self {
            flow_id: run.flow_id.to_string(),
            run_id: run.run_id.to_string(),
            status: run.status.name().to_owned(),
        }
    }
}

impl From<StartedRun> for WebhookRun {
    fn from(run: StartedRun) -> Self {
        Self {
            flow_guid: run.flow_id.to_string(),
            run_guid: run.run_id.to_string(),
            status: run.status.name().to_owned(),
        }
    }
}
