//! How document numbers are composed, and which counters they come from.

use chrono::{Datelike, NaiveDate};

use crate::document::Kind;
use crate::settings::Settings;

/// The counter that drafts of a kind are numbered from.
pub(crate) fn draft_counter(kind: Kind) -> String {
    format!("{}/draft", kind.name())
}

/// The counter that final documents of a kind and year are numbered from.
pub(crate) fn final_counter(kind: Kind, date: NaiveDate) -> String {
    format!("{}/{}", kind.name(), date.year())
}

/// The part of a final number before the sequence number. Credits share the sequence of the invoices.
pub(crate) fn final_prefix(settings: &Settings, kind: Kind, date: NaiveDate) -> String {
    let prefix = match kind {
        Kind::Invoice => &settings.invoice_prefix,
        Kind::Quote => &settings.quote_prefix,
        Kind::Workorder => &settings.workorder_prefix,
    };
    format!("{prefix}-{}-", date.year())
}

pub(crate) const DRAFT_PREFIX: &str = "DRAFT-";
