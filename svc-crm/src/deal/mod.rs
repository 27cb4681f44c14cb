//! Deals: what clients may buy, on its way through the phases of a pipeline. Clients belong to another service; only
//! their ids are known here.

pub mod events;
pub mod operations;
pub mod rpc;
mod rules;
pub mod scans;
pub mod store;

use chassis::time::timestamp;
use chrono::{DateTime, NaiveDate, Utc};
use proto::crm::{Deal, DealDetail, DealDetailMeta, DealMeta, DealPriority, DealStatus, DealStep};
use rust_decimal::Decimal;
use uuid::Uuid;

/// The counter of all deals.
const LIST: &str = "deal";

/// The counter of the deals with a status.
fn list_of(status: DealStatus) -> &'static str {
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
    pub values: Values,
    pub phase_since: DateTime<Utc>,
    /// Set while it is won, or lost.
    pub won_at: Option<DateTime<Utc>>,
    pub lost_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// What callers can set.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    pub title: String,
    pub client_id: Uuid,
    pub place: Place,
    pub amount: Option<Decimal>,
    pub priority: DealPriority,
    pub status: DealStatus,
    pub expected_close_date: Option<NaiveDate>,
    /// Empty when it was never set.
    pub source: String,
}

/// Where a deal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub pipeline_id: Uuid,
    pub phase_id: Uuid,
}

/// How a status is stored and shown.
pub fn status_name(status: DealStatus) -> &'static str {
    match status {
        DealStatus::Open | DealStatus::Unspecified => "open",
        DealStatus::Won => "won",
        DealStatus::Lost => "lost",
    }
}

/// The opposite of [`status_name`].
fn status_named(name: &str) -> DealStatus {
    let all = [DealStatus::Open, DealStatus::Won, DealStatus::Lost];
    all.into_iter().find(|status| status_name(*status) == name).unwrap_or_default()
}

/// How a priority is stored and shown.
fn priority_name(priority: DealPriority) -> &'static str {
    match priority {
        DealPriority::Low => "low",
        DealPriority::Medium | DealPriority::Unspecified => "medium",
        DealPriority::High => "high",
    }
}

/// The opposite of [`priority_name`].
fn priority_named(name: &str) -> DealPriority {
    let all = [DealPriority::Low, DealPriority::Medium, DealPriority::High];
    all.into_iter().find(|priority| priority_name(*priority) == name).unwrap_or_default()
}

/// An amount as it is shown: with two places, empty for none.
fn amount_text(amount: Option<Decimal>) -> String {
    let two_places = |mut amount: Decimal| {
        amount.rescale(2);
        amount.to_string()
    };
    amount.map(two_places).unwrap_or_default()
}

impl From<Record> for Deal {
    fn from(record: Record) -> Self {
        let Record { id, version: _, values, phase_since, won_at, lost_at, created_at, updated_at } = record;
        let Values { title, client_id, place, amount, priority, status, expected_close_date, source } =
            values;
        Self {
            id: id.to_string(),
            title,
            amount: amount_text(amount),
            status: status.into(),
            priority: priority.into(),
            pipeline_id: place.pipeline_id.to_string(),
            phase_id: place.phase_id.to_string(),
            client_id: client_id.to_string(),
            expected_close_date: expected_close_date.map(|day| day.to_string()).unwrap_or_default(),
            created_at: Some(timestamp(created_at)),
            meta: Some(DealMeta {
                updated_at: Some(timestamp(updated_at)),
                phase_since: Some(timestamp(phase_since)),
                won_at: won_at.map(timestamp),
                lost_at: lost_at.map(timestamp),
                source: Some(source).filter(|source| !source.is_empty()),
            }),
        }
    }
}

/// The deal together with its history.
fn detail(record: Record, history: Vec<DealStep>) -> DealDetail {
    let deal = Deal::from(record);
    let meta = deal.meta.map(|meta| DealDetailMeta {
        updated_at: meta.updated_at,
        phase_since: meta.phase_since,
        won_at: meta.won_at,
        lost_at: meta.lost_at,
        source: meta.source,
        history,
    });
    DealDetail {
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
