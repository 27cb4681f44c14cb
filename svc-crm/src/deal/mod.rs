//! Deals: what a client may buy, moving through the phases of a pipeline until it is won or lost. Owns deals and their
//! history. Clients belong to another service; a deal holds only the id of its client.

mod events;
pub(crate) mod operations;
pub(crate) mod rpc;
mod rules;
pub(crate) mod scans;
mod store;

use chassis_base::time::timestamp;
use chassis_data::Listing;
use chrono::{DateTime, NaiveDate, Utc};
use proto::crm::{Deal, DealDetail, DealDetailMeta, DealMeta, DealPriority, DealStatus, DealStep};
use rust_decimal::Decimal;
use serde::Deserialize;
use uuid::Uuid;

/// The name of the counter of all deals.
const LIST: &str = "deal";
/// What lists filter by.
const PIPELINE_COLUMN: &str = "pipeline_id";
const PHASE_COLUMN: &str = "phase_id";
const PRIORITY_COLUMN: &str = "priority";
const SOURCE_COLUMN: &str = "source";

/// The name of the counter of the deals with this status.
fn status_list(status: DealStatus) -> &'static str {
    match status {
        DealStatus::Open | DealStatus::Unspecified => "deal/open",
        DealStatus::Won => "deal/won",
        DealStatus::Lost => "deal/lost",
    }
}

/// A deal as it is stored.
#[derive(Clone, Debug)]
pub struct Record {
    pub id: Uuid,
    /// Grows by one with every change.
    pub version: i64,
    /// How many events it has had because time passed, which is no change.
    pub timed_events: i64,
    pub values: Values,
    pub phase_since: DateTime<Utc>,
    /// Set while it is won, or lost.
    pub won_at: Option<DateTime<Utc>>,
    pub lost_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl Record {
    /// The lists that show it.
    fn listing(&self) -> Listing {
        let Values { status, phase, priority, source, .. } = &self.values;
        let listing = Listing::new(self.created_at, self.id)
            .of(LIST)
            .of(status_list(*status))
            .with(LIST, PIPELINE_COLUMN, &phase.pipeline_id.to_string())
            .with(LIST, PHASE_COLUMN, &phase.phase_id.to_string())
            .with(LIST, PRIORITY_COLUMN, priority_name(*priority));
        if source.is_empty() { listing } else { listing.with(LIST, SOURCE_COLUMN, source) }
    }

    /// The version that its events carry: no two transactions emit an event with the same one.
    fn event_version(&self) -> i64 {
        self.version + self.timed_events
    }
}

/// The fields of a deal that callers set.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    pub title: String,
    pub client_id: Uuid,
    pub phase: PhaseRef,
    pub amount: Option<Decimal>,
    pub priority: DealPriority,
    pub status: DealStatus,
    pub expected_close_date: Option<NaiveDate>,
    /// Empty when it was never set.
    pub source: String,
}

/// The phase that a deal is in, with the pipeline of the phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseRef {
    pub pipeline_id: Uuid,
    pub phase_id: Uuid,
}

/// An entry of a deal's history: its phase and status from a moment on.
#[derive(Clone, Debug)]
pub struct Step {
    pub at: DateTime<Utc>,
    pub phase: PhaseRef,
    /// The name that the phase had then.
    pub phase_name: String,
    pub status: DealStatus,
    /// The quote whose acceptance the entry records.
    pub accepted_quote: Option<Uuid>,
}

/// How many entries of a history are shown: the latest ones.
const MAX_STEPS: u8 = 100;

/// A deal together with its history, oldest entry first.
pub struct RecordWithHistory {
    pub record: Record,
    /// The present name of its phase.
    pub phase_name: String,
    pub history: Vec<Step>,
}

impl RecordWithHistory {
    /// The entry that the history gets for the present phase and status.
    fn next_step(&self, at: DateTime<Utc>, accepted_quote: Option<Uuid>) -> Step {
        let Values { phase, status, .. } = self.record.values;
        Step { at, phase, phase_name: self.phase_name.clone(), status, accepted_quote }
    }

    /// Adds an entry to the history.
    fn add_step(&mut self, step: Step) {
        self.history.push(step);
        let hidden = self.history.len().saturating_sub(MAX_STEPS.into());
        self.history.drain(..hidden);
    }
}

/// A quote as the event of its acceptance describes it.
#[derive(Debug, Deserialize)]
pub(crate) struct AcceptedQuote {
    pub id: Uuid,
    #[serde(default)]
    pub number: String,
    pub client_id: Option<Uuid>,
    /// Passed on unchanged.
    #[serde(default)]
    pub total_incl_vat: serde_json::Value,
}

/// The name of a status, as it is stored and as events carry it.
fn status_name(status: DealStatus) -> &'static str {
    match status {
        DealStatus::Open | DealStatus::Unspecified => "open",
        DealStatus::Won => "won",
        DealStatus::Lost => "lost",
    }
}

/// The status with this name.
fn status_from_name(name: &str) -> Option<DealStatus> {
    let all = [DealStatus::Open, DealStatus::Won, DealStatus::Lost];
    all.into_iter().find(|status| status_name(*status) == name)
}

/// The name of a priority, as it is stored and as events carry it.
fn priority_name(priority: DealPriority) -> &'static str {
    match priority {
        DealPriority::Low => "low",
        DealPriority::Medium | DealPriority::Unspecified => "medium",
        DealPriority::High => "high",
    }
}

/// The priority with this name.
fn priority_from_name(name: &str) -> Option<DealPriority> {
    let all = [DealPriority::Low, DealPriority::Medium, DealPriority::High];
    all.into_iter().find(|priority| priority_name(*priority) == name)
}

/// An amount in a message: with two decimals; empty without an amount.
fn amount_text(amount: Option<Decimal>) -> String {
    let two_decimals = |mut amount: Decimal| {
        amount.rescale(2);
        amount.to_string()
    };
    amount.map(two_decimals).unwrap_or_default()
}

impl From<Record> for Deal {
    fn from(record: Record) -> Self {
        let Record { id, version, values, phase_since, won_at, lost_at, created_at, updated_at, .. } = record;
        let Values { title, client_id, phase, amount, priority, status, expected_close_date, source } =
            values;
        Self {
            id: id.to_string(),
            title,
            amount: amount_text(amount),
            status: status.into(),
            priority: priority.into(),
            pipeline_id: phase.pipeline_id.to_string(),
            phase_id: phase.phase_id.to_string(),
            client_id: client_id.to_string(),
            expected_close_date: expected_close_date.map(|day| day.to_string()).unwrap_or_default(),
            created_at: Some(timestamp(created_at)),
            meta: Some(DealMeta {
                updated_at: Some(timestamp(updated_at)),
                phase_since: Some(timestamp(phase_since)),
                won_at: won_at.map(timestamp),
                lost_at: lost_at.map(timestamp),
                source: Some(source).filter(|source| !source.is_empty()),
                version,
            }),
        }
    }
}

impl From<Step> for DealStep {
    fn from(step: Step) -> Self {
        Self {
            at: Some(timestamp(step.at)),
            pipeline_id: step.phase.pipeline_id.to_string(),
            phase_id: step.phase.phase_id.to_string(),
            phase: step.phase_name,
            status: step.status.into(),
            accepted_quote_id: step.accepted_quote.map(|id| id.to_string()),
        }
    }
}

impl From<RecordWithHistory> for DealDetail {
    fn from(RecordWithHistory { record, history, .. }: RecordWithHistory) -> Self {
        let deal = Deal::from(record);
        let meta = deal.meta.map(|meta| DealDetailMeta {
            updated_at: meta.updated_at,
            phase_since: meta.phase_since,
            won_at: meta.won_at,
            lost_at: meta.lost_at,
            source: meta.source,
            history: history.into_iter().map(Into::into).collect(),
            version: meta.version,
        });
        Self {
            id: deal.id,
            title: deal.title,
            amount: deal.amount,
            status: deal.status,
            priority: deal.priority,
            pipeline_id: deal.pipeline_id,
            phase_id: deal.phase_id,
            client_id: deal.client_id,
            expected_close_date: deal.expected_close_date,
            created_at: deal.created_at,
            meta,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stored_name_is_read_as_it_was_written_and_no_other() {
        for number in 1..=3 {
            let status = DealStatus::try_from(number).unwrap();
            assert_eq!(status_from_name(status_name(status)), Some(status));
            let priority = DealPriority::try_from(number).unwrap();
            assert_eq!(priority_from_name(priority_name(priority)), Some(priority));
        }
        assert_eq!((status_from_name("paused"), priority_from_name("")), (None, None));
    }
}
