//! A service as a process: its configuration, telemetry, ports, start and stop, its command line, what operators can ask
//! it, and what a service has to say about itself ([`Service`]). The top of the layers; only the product's own services
//! stand on it.

pub mod assembly;
pub mod config;
pub mod connections;
pub mod doctor;
pub mod process;
mod provisioning;
pub mod runtime;
pub mod server;
pub mod service;
pub mod stage;
pub mod telemetry;

pub use runtime::Runtime;
pub use service::Service;
