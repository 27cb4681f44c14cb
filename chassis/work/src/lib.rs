//! What no caller waits for: leases and workers, the delivery of events, scans of what time brings, mail, files, dead
//! letters and the measuring of what waits. Stands on the database and on calls; knows no service.

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
pub mod worker;

pub use files::Files;
pub use worker::Worker;
