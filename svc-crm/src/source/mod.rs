//! Deal sources: where deals come from. A deal keeps the name of its source when the source is renamed or removed.

pub(crate) mod operations;
pub(crate) mod rpc;
mod rules;
pub(crate) mod store;

use chassis_base::time::timestamp;
use chrono::{DateTime, Utc};
use proto::crm::DealSource;

use crate::ordering::Entry;

/// How many sources an account can have.
const MAX_SOURCES: usize = 200;

/// A source as it is stored. Its name is its key.
#[derive(Clone, Debug, PartialEq, Eq, chassis_derive::FromRow)]
pub struct Record {
    pub name: String,
    /// From 1, without gaps.
    pub position: i32,
    /// Grows by one with every change.
    pub version: i64,
    pub updated_at: DateTime<Utc>,
}

impl Entry for Record {
    fn order(&self) -> i32 {
        self.position
    }

    fn move_to(&mut self, order: i32, now: DateTime<Utc>) {
        self.position = order;
        self.version += 1;
        self.updated_at = now;
    }
}

impl From<Record> for DealSource {
    fn from(record: Record) -> Self {
        let Record { name, position, version, updated_at } = record;
        Self { name, order: position, version, updated_at: Some(timestamp(updated_at)) }
    }
}
