//! The statuses that tickets of an account can have, and which status a ticket gets automatically.

pub(crate) mod operations;
pub(crate) mod rpc;
pub(crate) mod rules;
pub(crate) mod store;

use chassis_base::time::timestamp;
use chrono::{DateTime, Utc};
use proto::support::TicketStatus;
use uuid::Uuid;

/// The statuses that every account starts with, in their order. Tickets get these automatically, so they cannot be
/// removed.
pub(crate) const BUILT_IN: [&str; 5] = [rules::NEW, rules::OPEN, rules::WAITING, "solved", rules::CLOSED];

/// A status as it is stored. Tickets refer to it by its name, which never changes.
#[derive(Clone, Debug, PartialEq, Eq, chassis_derive::FromRow)]
pub struct Record {
    pub id: Uuid,
    pub version: i64,
    pub name: String,
    pub active: bool,
    pub position: i32,
    pub updated_at: DateTime<Utc>,
}

impl From<Record> for TicketStatus {
    fn from(record: Record) -> Self {
        let Record { id, version, name, active, position, updated_at } = record;
        Self {
            id: id.to_string(),
            name,
            active,
            order: position,
            version,
            updated_at: Some(timestamp(updated_at)),
        }
    }
}
