//! The kinds of records of this service, as the audit log stores them. They never change.

pub const DEAL: &str = "deal";
pub const DEAL_SOURCE: &str = "deal_source";
pub const PHASE: &str = "phase";
pub const PIPELINE: &str = "pipeline";
