//! What makes a deal source valid. Pure.

use proto::api::Fault;
use proto::{At, Faults};

use super::Record;

/// Refuses a name that another source has.
pub(super) fn check_unique(name: &str, sources: &[Record], at: &At<'_>, faults: &mut Faults) {
    if sources.iter().any(|source| source.name == name) {
        let detail = format!("{} must differ from the names that there are", at.label());
        faults.add(at, Fault::Repeated, detail);
    }
}
