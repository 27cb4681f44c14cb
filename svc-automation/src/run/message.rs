//! Records as the messages of the contract. Apart from `mod.rs`, which would be too long with them.

use chassis_base::time::timestamp;
use proto::automation::{Run, RunMeta, RunStep, TriggeredRun, WebhookRun};

use super::{Record, RunWithSteps, StartedRun, StepRecord};

impl From<RunWithSteps> for Run {
    fn from(RunWithSteps { run, steps }: RunWithSteps) -> Self {
        let meta = RunMeta {
            entity_id: run.entity_id,
            event_id: run.event_id.map(|id| id.to_string()).unwrap_or_default(),
            flow_version: run.flow_version,
            depth: run.depth,
            started_at: run.started_at.map(timestamp),
            finished_at: run.finished_at.map(timestamp),
            steps: steps.into_iter().map(RunStep::from).collect(),
        };
        Self {
            id: run.id.to_string(),
            flow_id: run.flow_id.to_string(),
            flow_name: run.flow_name,
            status: run.status.name().to_owned(),
            trigger_type: proto::automation::TriggerType::from(run.trigger_type).into(),
            trigger_key: run.trigger_key,
            entity_type: run.entity_type,
            attempts: run.attempts,
            max_attempts: run.max_attempts,
            actions_done: run.actions_done,
            error: run.error,
            created_at: Some(timestamp(run.created_at)),
            updated_at: Some(timestamp(run.updated_at)),
            next_attempt_at: run.next_at.filter(|_| run.status.is_waiting()).map(timestamp),
            meta: Some(meta),
        }
    }
}

/// Without its steps, as in lists.
impl From<Record> for Run {
    fn from(run: Record) -> Self {
        RunWithSteps { run, steps: Vec::new() }.into()
    }
}

impl From<StepRecord> for RunStep {
    fn from(step: StepRecord) -> Self {
        Self {
            id: step.step,
            kind: step.kind.name().to_owned(),
            outcome: step.outcome.name().to_owned(),
            attempts: step.attempts,
            started_at: Some(timestamp(step.started_at)),
            ended_at: step.ended_at.map(timestamp),
            error: step.error,
            decided_by: step.decided_by,
            reason: step.reason,
        }
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
