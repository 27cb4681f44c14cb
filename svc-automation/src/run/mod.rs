//! Runs: one for every time that a flow was started. Owns what has been done and what comes next. A run is a row that any
//! process can continue from, so nothing is lost with the process that worked on it.
//!
//! `message` turns records into messages, so that this file stays short. `prepare` renders a step; it is a file of its own
//! because tests of flows use it too.

mod message;
pub(crate) mod operations;
pub(crate) mod prepare;
mod rpc;
mod rules;
mod store;
pub(crate) mod worker;

use chassis_data::Listing;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::definition::{StepKind, TriggerType};

pub(crate) use rpc::Runs;

/// The counter of all runs.
const LIST: &str = "run";
/// What lists filter by.
const STATUS_COLUMN: &str = "status";
const TRIGGER_COLUMN: &str = "trigger_type";

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

    pub(crate) fn name(self) -> &'static str {
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

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether the run has ended; only a restart continues it.
    pub(crate) fn is_finished(self) -> bool {
        matches!(self, Self::Success | Self::Partial | Self::Failed | Self::Cancelled)
    }

    /// Whether `next_at` is a time that callers are interested in.
    fn is_waiting(self) -> bool {
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
    pub trigger_type: TriggerType,
    pub trigger_key: String,
    pub entity_type: String,
    pub entity_id: String,
    pub event_id: Option<Uuid>,
    /// The event as JSON, as steps see it. A copy, because the event may be deleted before the run ends.
    pub event: String,
    pub depth: i32,
    pub status: Status,
    /// The status that is stored.
    pub stored_status: Status,
    /// The step that is next or in progress, or was the last; empty before the first.
    pub step: String,
    pub attempts: i32,
    /// Renderings that were started and have not ended.
    pub renders: i32,
    pub max_attempts: i32,
    pub actions_done: i32,
    pub failed_steps: i32,
    pub error: String,
    /// When the worker has to look at it; `None` when it has ended or waits for a person without a limit.
    pub next_at: Option<DateTime<Utc>>,
    /// Counts the changes of what the run and its steps show.
    pub version: i64,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
}

impl Record {
    /// The lists that show it.
    fn listing(&self) -> Listing {
        self.listing_as(self.status)
    }

    /// The lists that show it before this transaction stores it.
    fn stored_listing(&self) -> Listing {
        self.listing_as(self.stored_status)
    }

    fn listing_as(&self, status: Status) -> Listing {
        listing(self.created_at, self.id, status.name(), self.trigger_type.name())
    }
}

fn listing(created_at: DateTime<Utc>, id: Uuid, status: &str, trigger: &str) -> Listing {
    Listing::new(created_at, id).of(LIST).with(LIST, STATUS_COLUMN, status).with(
        LIST,
        TRIGGER_COLUMN,
        trigger,
    )
}

/// The state or result of a step.
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

    pub(crate) fn name(self) -> &'static str {
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

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }
}

/// A step that has started, as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct StepRecord {
    pub step: String,
    pub ordinal: i32,
    pub kind: StepKind,
    pub outcome: Outcome,
    pub attempts: i32,
    /// What it sends, as JSON; the same at every attempt, because the idempotency key stands for it.
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

/// A run that an event or a person has started.
pub(crate) struct StartedRun {
    pub flow_id: Uuid,
    pub run_id: Uuid,
    pub status: Status,
}
