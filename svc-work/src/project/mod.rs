//! Projects. A project holds only the ids of its client and its quote, which belong to other services.

mod events;
pub(crate) mod operations;
mod quotes;
pub(crate) mod rpc;
mod rules;
mod store;

pub(crate) use operations::{check_reference, clear_quotes};
pub(crate) use store::exists;

use chassis_base::time::timestamp;
use chassis_data::Listing;
use chrono::{DateTime, NaiveDate, Utc};
use proto::work::{Project, ProjectMeta, ProjectStatus};
use rust_decimal::Decimal;
use uuid::Uuid;

/// The name of the counter of all projects.
const LIST: &str = "project";

/// What lists filter by.
const STATUS_COLUMN: &str = "status";
/// The name of the counter that gives projects their numbers.
const NUMBERS: &str = "project";

/// The fields of a project that callers set.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Values {
    name: String,
    status: ProjectStatus,
    client: Option<Uuid>,
    budget: Option<Decimal>,
    start: Option<NaiveDate>,
    end: Option<NaiveDate>,
}

impl Default for Values {
    fn default() -> Self {
        Self {
            name: String::new(),
            status: ProjectStatus::Planned,
            client: None,
            budget: None,
            start: None,
            end: None,
        }
    }
}

/// A project as it is stored.
#[derive(Clone, Debug)]
struct Record {
    id: Uuid,
    /// Grows by one with every change.
    version: i64,
    number: String,
    values: Values,
    /// The quote that it was created from.
    quote: Option<Uuid>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl Record {
    /// The lists that show it.
    fn listing(&self) -> Listing {
        let status = status_name(self.values.status);
        Listing::new(self.created_at, self.id).of(LIST).with(LIST, STATUS_COLUMN, status)
    }
}

/// The name of a status, as it is stored and shown.
fn status_name(status: ProjectStatus) -> &'static str {
    match status {
        ProjectStatus::Planned | ProjectStatus::Unspecified => "planned",
        ProjectStatus::Active => "active",
        ProjectStatus::OnHold => "on_hold",
        ProjectStatus::Completed => "completed",
        ProjectStatus::Cancelled => "cancelled",
    }
}

/// The status with this name.
fn status_from_name(name: &str) -> Option<ProjectStatus> {
    let all = [
        ProjectStatus::Planned,
        ProjectStatus::Active,
        ProjectStatus::OnHold,
        ProjectStatus::Completed,
        ProjectStatus::Cancelled,
    ];
    all.into_iter().find(|status| status_name(*status) == name)
}

impl From<Record> for Project {
    fn from(record: Record) -> Self {
        let Record { id, version, number, values, quote, created_at, updated_at } = record;
        let Values { name, status, client, budget, start, end } = values;
        let day = |day: Option<NaiveDate>| day.map(|day| day.to_string()).unwrap_or_default();
        let mut project = Self {
            id: id.to_string(),
            name,
            number,
            client_id: client.map(|id| id.to_string()).unwrap_or_default(),
            budget: budget.map(|budget| format!("{budget:.2}")).unwrap_or_default(),
            start_date: day(start),
            end_date: day(end),
            meta: Some(ProjectMeta {
                quote_id: quote.map(|id| id.to_string()),
                created_at: Some(timestamp(created_at)),
                updated_at: Some(timestamp(updated_at)),
                version,
            }),
            ..Self::default()
        };
        project.set_status(status);
        project
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_read_as_it_was_written_and_no_other_text_is() {
        for number in 1..=5 {
            let status = ProjectStatus::try_from(number).unwrap();
            assert_eq!(status_from_name(status_name(status)), Some(status));
            assert_eq!(
                status.as_str_name().to_lowercase(),
                format!("project_status_{}", status_name(status)),
                "stored as it is shown"
            );
        }
        assert_eq!(status_from_name("done"), None);
    }
}
