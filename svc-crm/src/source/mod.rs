//! Deal sources: where deals come from. A deal keeps the name of its source when the source is renamed or removed.

mod operations;
pub(crate) mod rpc;
mod rules;
pub(crate) mod store;

use proto::crm::DealSource;

/// How many sources an account can have.
const MAX_SOURCES: usize = 200;

/// A source as it is stored. Its name is its key.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Record {
    pub name: String,
    /// From 1, without gaps.
    pub position: i32,
}

impl From<Record> for DealSource {
    fn from(record: Record) -> Self {
        Self { name: record.name, order: record.position }
    }
}
