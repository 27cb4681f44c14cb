//! Times and dates between Rust and the messages.

use chrono::{DateTime, Utc};
use prost_types::Timestamp;

pub fn timestamp(time: DateTime<Utc>) -> Timestamp {
    Timestamp {
        seconds: time.timestamp(),
        nanos: i32::try_from(time.timestamp_subsec_nanos()).unwrap_or_default(),
    }
}

/// `None` when it is no time that exists.
pub fn from_timestamp(timestamp: &Timestamp) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(timestamp.seconds, u32::try_from(timestamp.nanos).ok()?)
}
