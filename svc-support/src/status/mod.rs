//! The statuses that tickets of an account can have, and which status a ticket gets automatically.

pub(crate) mod operations;
pub(crate) mod rpc;
pub(crate) mod rules;
pub(crate) mod store;

use proto::support::TicketStatus;
use uuid::Uuid;

/// The statuses that every account starts with, in their order. Tickets get these automatically, so they cannot be
/// removed.
pub(crate) const BUILT_IN: [&str; 5] = [rules::NEW, rules::OPEN, rules::WAITING, "solved", rules::CLOSED];

/// A status as it is stored. Tickets refer to it by its name, which never changes.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Record {
    pub id: Uuid,
    pub name: String,
    pub active: bool,
    pub position: i32,
}

impl From<Record> for TicketStatus {
    fn from(record: Record) -> Self {
        let Record { id, name, active, position } = record;
        Self { id: id.to_string(), name, active, order: position }
    }
}
