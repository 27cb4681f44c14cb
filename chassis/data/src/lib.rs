//! The database of a service: connections, lists and totals, counters, idempotency keys, events on their way out, the
//! audit log, and the write transaction that ties them together. Knows calls by their context only; knows no background
//! work beyond how to wake it and how to prove a lease, and no service.

mod account;
pub mod audit;
mod caused;
pub mod connect;
pub mod db;
pub mod idempotency;
pub mod lease;
mod link;
pub mod list;
mod long_pages;
pub mod migrations;
pub mod numbering;
mod origin;
pub mod outbox;
pub mod pool;
mod pooler;
pub mod probe;
pub mod references;
pub mod row;
pub mod session_settings;
pub mod settings;
mod totals;
pub mod wake;
mod wake_up;
pub mod write;

pub use db::Db;
pub use long_pages::PageBytes;
pub use outbox::{Event, Listener};
pub use probe::Unreachable;
pub use settings::DatabaseSettings;
pub use wake_up::post_wake_up;
pub use write::Tx;
