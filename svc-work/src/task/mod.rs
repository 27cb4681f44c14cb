//! Tasks. A task is open until it is completed, and can be opened again.

pub(crate) mod operations;
pub(crate) mod rpc;
mod rules;
mod store;

pub(crate) use operations::clear_deals;

use chassis_base::time::timestamp;
use chassis_data::Listing;
use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};
use proto::work::{ChangedTask, CreatedTask, Task, TaskCategory, TaskItem, TaskMeta, TaskState, TaskStatus};
use uuid::Uuid;

/// The name of the counter of all tasks.
const LIST: &str = "task";

/// What lists filter by.
const CATEGORY_COLUMN: &str = "category";
/// The name of a filter, which no column has.
const STATUS: &str = "status";

/// When a task is due: on a day, or at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deadline {
    Day(NaiveDate),
    Moment(DateTime<Utc>),
}

impl Deadline {
    /// The deadline in a message.
    fn text(self) -> String {
        match self {
            Self::Day(day) => day.to_string(),
            Self::Moment(moment) => moment.to_rfc3339_opts(SecondsFormat::Millis, true),
        }
    }
}

/// The deadlines that a list is restricted to; `None` is open.
#[derive(Clone, Copy, Debug, Default)]
struct DeadlineRange {
    from: Option<DeadlineBound>,
    to: Option<DeadlineBound>,
}

/// An end of a range of deadlines, included: a day for deadlines that are days, a moment for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DeadlineBound {
    day: NaiveDate,
    moment: DateTime<Utc>,
}

/// The fields of a task that can be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Values {
    title: String,
    category: TaskCategory,
    notes: String,
    deadline: Option<Deadline>,
    duration: Option<i32>,
}

/// The records that a task belongs to.
#[derive(Clone, Copy, Debug, Default)]
struct Related {
    client: Option<Uuid>,
    project: Option<Uuid>,
    deal: Option<Uuid>,
}

/// A task as it is stored.
#[derive(Clone, Debug)]
struct Record {
    id: Uuid,
    /// Grows by one with every change.
    version: i64,
    values: Values,
    related: Related,
    completed_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl Record {
    /// The lists that show it.
    fn listing(&self) -> Listing {
        Listing::new(self.created_at, self.id).of(LIST).with(LIST, STATUS, status_name(self.status())).with(
            LIST,
            CATEGORY_COLUMN,
            category_name(self.values.category),
        )
    }

    fn status(&self) -> TaskStatus {
        if self.completed_at.is_some() { TaskStatus::Completed } else { TaskStatus::Open }
    }

    fn deadline(&self) -> String {
        self.values.deadline.map(Deadline::text).unwrap_or_default()
    }

    fn meta(&self) -> TaskMeta {
        TaskMeta {
            deal_id: self.related.deal.map(|id| id.to_string()),
            completed_at: self.completed_at.map(timestamp),
            updated_at: Some(timestamp(self.updated_at)),
            version: self.version,
        }
    }
}

/// The name of a status, as it is shown.
fn status_name(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Open | TaskStatus::Unspecified => "open",
        TaskStatus::Completed => "completed",
    }
}

/// The name of a category, as it is stored and shown.
fn category_name(category: TaskCategory) -> &'static str {
    match category {
        TaskCategory::Task | TaskCategory::Unspecified => "task",
        TaskCategory::Call => "call",
        TaskCategory::Meeting => "meeting",
    }
}

/// The category with this name.
fn category_from_name(name: &str) -> Option<TaskCategory> {
    let all = [TaskCategory::Task, TaskCategory::Call, TaskCategory::Meeting];
    all.into_iter().find(|category| category_name(*category) == name)
}

fn id_text(id: Option<Uuid>) -> String {
    id.map(|id| id.to_string()).unwrap_or_default()
}

impl From<Record> for Task {
    fn from(record: Record) -> Self {
        Self {
            id: record.id.to_string(),
            category: record.values.category.into(),
            status: record.status().into(),
            deadline: record.deadline(),
            duration_minutes: record.values.duration,
            client_id: id_text(record.related.client),
            project_id: id_text(record.related.project),
            created_at: Some(timestamp(record.created_at)),
            meta: Some(record.meta()),
            title: record.values.title,
            notes: record.values.notes,
        }
    }
}

impl From<Record> for TaskItem {
    fn from(record: Record) -> Self {
        Self {
            id: record.id.to_string(),
            category: record.values.category.into(),
            status: record.status().into(),
            deadline: record.deadline(),
            client_id: id_text(record.related.client),
            project_id: id_text(record.related.project),
            created_at: Some(timestamp(record.created_at)),
            meta: Some(record.meta()),
            title: record.values.title,
        }
    }
}

impl From<Record> for CreatedTask {
    fn from(record: Record) -> Self {
        Self {
            id: record.id.to_string(),
            version: record.version,
            category: record.values.category.into(),
            status: record.status().into(),
            title: record.values.title,
        }
    }
}

impl From<Record> for ChangedTask {
    fn from(record: Record) -> Self {
        Self {
            id: record.id.to_string(),
            version: record.version,
            category: record.values.category.into(),
            status: record.status().into(),
            deadline: record.deadline(),
            title: record.values.title,
            notes: record.values.notes,
        }
    }
}

impl From<Record> for TaskState {
    fn from(record: Record) -> Self {
        Self {
            id: record.id.to_string(),
            version: record.version,
            status: record.status().into(),
            title: record.values.title,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_category_is_read_as_it_was_written_and_no_other_text_is() {
        for number in 1..=3 {
            let category = TaskCategory::try_from(number).unwrap();
            assert_eq!(category_from_name(category_name(category)), Some(category));
            let shown = format!("task_category_{}", category_name(category));
            assert_eq!(category.as_str_name().to_lowercase(), shown, "stored as it is shown");
        }
        assert_eq!(category_from_name("party"), None);
    }
}
