//! Where tickets can stand: the statuses of an account, and which one a ticket gets by itself.

pub mod rpc;
pub mod rules;
pub mod store;

use proto::support::TicketStatus;
use uuid::Uuid;

/// Those that every account starts with, in their order. What happens to tickets leads to these.
pub const BUILT_IN: [&str; 5] = [rules::NEW, rules::OPEN, rules::WAITING, "solved", rules::CLOSED];

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
