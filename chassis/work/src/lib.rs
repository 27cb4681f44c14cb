//! Work that no caller waits for: leases and workers, the delivery of events, time-based scans, mail, files, dead
//! letters and backlog metrics. Depends on the database and rpc layers and not on any service.

pub mod backlog;
pub mod dead_letters;
pub mod event_listener;
pub mod files;
pub mod idempotency;
mod interval;
pub mod mail;
mod private;
pub mod relay;
pub mod scan;
pub mod snapshot;
pub mod worker;

pub use files::Files;
pub use worker::Worker;
