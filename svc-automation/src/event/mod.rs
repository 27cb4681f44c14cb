//! Events: taken in from other services, kept once each.

mod rpc;
pub(crate) mod rules;
pub(crate) mod store;

use chrono::{DateTime, Utc};
use uuid::Uuid;

pub(crate) use rpc::Rpc;

/// An event as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub id: Uuid,
    pub kind: String,
    pub entity_type: String,
    pub entity_id: String,
    /// None when an integration fired it.
    pub sequence: Option<i64>,
    pub data: String,
    pub occurred_at: DateTime<Utc>,
}
