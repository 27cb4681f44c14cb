//! Runs: one for every time that a flow was started. Owns what has been done and what comes next; a run is a row that
//! anyone can take up where it stands, so nothing is lost with the process that worked on it.

pub(crate) mod executor;
pub(crate) mod operations;
pub(crate) mod prepare;
mod rpc;
pub(crate) mod rules;
pub(crate) mod start;
pub(crate) mod store;

use chassis_base::time::timestamp;
use chrono::{DateTime, Utc};
use proto::automation::{Run, RunMeta, RunStep};
use uuid::Uuid;

use crate::flow::trigger_type;

pub(crate) use rpc::Runs;

/// The counter of all runs.
pub(crate) const LIST: &str = "run";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Queued,
    Running,
    Waiting,
    PendingApproval,
    Retrying,
    Success,
    Partial,
    Failed,
    Cancelled,
}

impl Status {
    const ALL: [Self; 9] = [
        Self::Queued,
        Self::Running,
        Self::Waiting,
        Self::PendingApproval,
        Self::Retrying,
        Self::Success,
        Self::Partial,
        Self::Failed,
        Self::Cancelled,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::PendingApproval => "pending_approval",
            Self::Retrying => "retrying",
            Self::Success => "success",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether nothing more happens by itself.
    pub fn is_finished(self) -> bool {
        matches!(self, Self::Success | Self::Partial | Self::Failed | Self::Cancelled)
    }

    /// Whether the time to go on is of interest to those who look.
    fn waits(self) -> bool {
        matches!(self, Self::Waiting | Self::PendingApproval | Self::Retrying)
    }
}

/// A run as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub id: Uuid,
    pub flow_id: Uuid,
    pub flow_version: i64,
    pub flow_name: String,
    pub trigger_type: String,
    pub trigger_key: String,
    pub entity_type: String,
    pub entity_id: String,
    pub event_id: Option<Uuid>,
    /// What the steps see of the event, as JSON.
    pub event: String,
    pub depth: i32,
    pub status: Status,
    /// The step that is next or being taken, or was the last; empty before the first.
    pub step: String,
    pub attempts: i32,
    /// Renderings that were begun and have not ended.
    pub renders: i32,
    pub max_attempts: i32,
    pub actions_done: i32,
    pub failed_steps: i32,
    pub error: String,
    pub next_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
}

/// What has become of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Running,
    Retrying,
    Waiting,
    Pending,
    Done,
    Failed,
    Approved,
    Rejected,
    Expired,
}

impl Outcome {
    const ALL: [Self; 9] = [
        Self::Running,
        Self::Retrying,
        Self::Waiting,
        Self::Pending,
        Self::Done,
        Self::Failed,
        Self::Approved,
        Self::Rejected,
        Self::Expired,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Retrying => "retrying",
            Self::Waiting => "waiting",
            Self::Pending => "pending",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }
}

/// A step that has begun, as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct StepRecord {
    pub step: String,
    pub ordinal: i32,
    pub kind: String,
    pub outcome: Outcome,
    pub attempts: i32,
    /// What it sends, as JSON; the same at every attempt.
    pub input: Option<String>,
    pub answer: Option<String>,
    pub error: String,
    /// The last attempt may have had its effect although it failed.
    pub uncertain: bool,
    pub decided_by: String,
    pub reason: String,
    pub started_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
}

/// A run as everyone sees it.
pub(crate) fn shown(record: Record, steps: Vec<StepRecord>) -> Run {
    let meta = RunMeta {
        entity_id: record.entity_id,
        event_id: record.event_id.map(|id| id.to_string()).unwrap_or_default(),
        flow_version: record.flow_version,
        depth: record.depth,
        started_at: record.started_at.map(timestamp),
        finished_at: record.finished_at.map(timestamp),
        steps: steps.into_iter().map(shown_step).collect(),
    };
    Run {
        id: record.id.to_string(),
        flow_id: record.flow_id.to_string(),
        flow_name: record.flow_name,
        status: record.status.name().to_owned(),
        trigger_type: trigger_type(&record.trigger_type).into(),
        trigger_key: record.trigger_key,
        entity_type: record.entity_type,
        attempts: record.attempts,
        max_attempts: record.max_attempts,
        actions_done: record.actions_done,
        error: record.error,
        created_at: Some(timestamp(record.created_at)),
        updated_at: Some(timestamp(record.updated_at)),
        next_attempt_at: record.next_at.filter(|_| record.status.waits()).map(timestamp),
        meta: Some(meta),
    }
}

fn shown_step(step: StepRecord) -> RunStep {
    RunStep {
        id: step.step,
        kind: step.kind,
        outcome: step.outcome.name().to_owned(),
        attempts: step.attempts,
        started_at: Some(timestamp(step.started_at)),
        ended_at: step.ended_at.map(timestamp),
        error: step.error,
        decided_by: step.decided_by,
        reason: step.reason,
    }
}
