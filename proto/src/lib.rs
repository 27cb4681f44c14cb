//! The contract: messages and services generated from the proto files, the descriptor set with our options, and what
//! the options imply for a request. Knows neither SQL nor HTTP.

pub mod check;
pub mod decimal;
pub mod fault;
pub mod list;
pub mod percentage;
pub mod policy;
#[cfg(feature = "grpc")]
pub mod unary;

mod names;
mod nearest;

pub use check::Check;
pub use fault::{At, Faults};
pub use list::ListRequest;
pub use names::{snake, value_name};
pub use nearest::{did_you_mean, nearest};

#[allow(clippy::all, clippy::pedantic, reason = "generated")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/tree.rs"));
}

pub use generated::{admin, google};

pub use admin::accounts::v1 as accounts;
pub use admin::api::v1 as api;
pub use admin::audit::v1 as audit;
pub use admin::automation::v1 as automation;
pub use admin::billing::v1 as billing;
pub use admin::crm::v1 as crm;
pub use admin::gateway::v1 as gateway;
pub use admin::log::v1 as log;
pub use admin::relations::v1 as relations;
pub use admin::scans::v1 as scans;
pub use admin::support::v1 as support;
pub use admin::work::v1 as work;

/// The encoded `FileDescriptorSet` of all proto files, options and comments included.
pub const DESCRIPTOR: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptor.bin"));

/// The same without comments, for reflection.
pub const REFLECTION: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/reflection.bin"));
