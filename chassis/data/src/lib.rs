//! The database of a service: connections, lists and totals, counters, idempotency keys, the log, and the write
//! transaction that ties them together. It depends on calls only through their context.
//! It can wake background work and check a lease, but contains no background work and nothing of a particular service.

mod account;
mod caused;
pub mod connect;
pub mod db;
pub mod idempotency;
pub mod lease;
mod link;
pub mod list;
pub mod listing;
pub mod log;
mod long_pages;
pub mod migrations;
pub mod numbering;
mod origin;
pub mod pool;
mod pooler;
mod preparation;
pub mod probe;
pub mod references;
pub mod row;
mod rows;
pub mod session_settings;
pub mod settings;
mod totals;
mod value;
pub mod wake;
mod wake_up;
mod withdrawal;
pub mod write;

pub use db::Db;
pub use listing::Listing;
pub use log::event::{Event, Listener};
pub use long_pages::PageBytes;
pub use probe::Unreachable;
pub use settings::DatabaseSettings;
pub use wake_up::post_wake_up;
pub use write::{LazyTx, Plan, Tx};
