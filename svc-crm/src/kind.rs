//! The kinds of records of this service, as the log stores them. They never change.

pub(crate) const DEAL: &str = "deal";
pub(crate) const DEAL_SOURCE: &str = "deal_source";
pub(crate) const PHASE: &str = "phase";
pub(crate) const PIPELINE: &str = "pipeline";
