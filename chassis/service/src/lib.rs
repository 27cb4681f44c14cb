//! A service as a process: configuration, telemetry, ports, start and stop, the command line, the diagnostics for
//! operators, and the trait that a service implements ([`Service`]). The top layer of the chassis: only services and
//! the gateway use it.

pub mod assembly;
pub mod config;
pub mod connections;
pub mod doctor;
pub mod process;
mod provisioning;
mod reflection;
pub mod runtime;
pub mod server;
pub mod service;
pub mod stage;
pub mod table;
pub mod telemetry;

pub use runtime::Runtime;
pub use service::Service;
