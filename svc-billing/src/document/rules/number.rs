//! How numbers are written.

use chrono::{Datelike, NaiveDate};

use crate::document::Kind;

/// The counter that drafts of a kind are numbered from.
pub fn draft_counter(kind: Kind) -> String {
    format!("{}/draft", kind.name())
}

/// The counter that final documents of a kind and year are numbered from.
pub fn final_counter(kind: Kind, date: NaiveDate) -> String {
    format!("{}/{}", kind.name(), date.year())
}

/// What a final number begins with, up to its last hyphen.
pub fn final_prefix(prefix: &str, date: NaiveDate) -> String {
    format!("{prefix}-{}-", date.year())
}

pub const DRAFT_PREFIX: &str = "DRAFT-";
