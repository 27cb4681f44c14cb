//! The filter `active` of the lists of statuses and of channels. Pure.

use proto::api::Fault;
use proto::{At, Faults};

/// Whether the active records are requested, or the inactive ones. Without a value, the active ones.
pub(crate) fn parse(text: &str, faults: &mut Faults) -> bool {
    if !matches!(text, "" | "0" | "1") {
        faults.add(&At::ROOT.name("active"), Fault::NotAllowed, "active must be 1 or 0");
    }
    text != "0"
}
