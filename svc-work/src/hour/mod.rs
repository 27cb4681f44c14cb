//! Hours: time spent on projects. An entry is a draft, is submitted, and is then approved or rejected.

pub(crate) mod operations;
pub(crate) mod rpc;
mod rules;
mod store;

use chassis_base::time::timestamp;
use chrono::{DateTime, NaiveDate, Utc};
use proto::work::{HourEntry, HourEntryMeta, HourStatus};
use rust_decimal::Decimal;
use uuid::Uuid;

/// The fields of an entry that callers set.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Values {
    date: NaiveDate,
    hours: Decimal,
    minutes: i32,
    activity_name: String,
}

/// An entry as it is stored.
#[derive(Clone, Debug)]
struct Record {
    id: Uuid,
    /// Grows by one with every change.
    version: i64,
    project: Uuid,
    values: Values,
    status: HourStatus,
    /// Why it was rejected.
    reason: String,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

/// The name of a status, as it is stored and shown.
fn status_name(status: HourStatus) -> &'static str {
    match status {
        HourStatus::Draft | HourStatus::Unspecified => "draft",
        HourStatus::Submitted => "submitted",
        HourStatus::Approved => "approved",
        HourStatus::Rejected => "rejected",
    }
}

/// The status with this name.
fn status_from_name(name: &str) -> Option<HourStatus> {
    let all = [HourStatus::Draft, HourStatus::Submitted, HourStatus::Approved, HourStatus::Rejected];
    all.into_iter().find(|status| status_name(*status) == name)
}

impl From<Record> for HourEntry {
    fn from(record: Record) -> Self {
        let Record { id, version, project, values, status, reason, created_at, updated_at } = record;
        let mut entry = Self {
            id: id.to_string(),
            date: values.date.to_string(),
            hours: values.hours.normalize().to_string(),
            minutes: values.minutes,
            activity_name: values.activity_name,
            meta: Some(HourEntryMeta {
                project_id: project.to_string(),
                reason,
                created_at: Some(timestamp(created_at)),
                updated_at: Some(timestamp(updated_at)),
                version,
            }),
            ..Self::default()
        };
        entry.set_status(status);
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_read_as_it_was_written_and_no_other_text_is() {
        for number in 1..=4 {
            let status = HourStatus::try_from(number).unwrap();
            assert_eq!(status_from_name(status_name(status)), Some(status));
            let shown = format!("hour_status_{}", status_name(status));
            assert_eq!(status.as_str_name().to_lowercase(), shown, "stored as it is shown");
        }
        assert_eq!(status_from_name("late"), None);
    }
}
