//! JSON to protobuf wire bytes and back, by plans that are computed once from the descriptor.
//!
//! Owns the public operations of the contract, the JSON shapes and the places of faults, for the gateway and for whoever
//! calls an rpc by its name.
//! Pure: knows no HTTP server, no service and no resource. No input, from outside or from a service, can make it panic.

mod body;
pub mod contract;
mod json;
mod numbers;
mod plan;
mod query;
mod render;
mod request;
mod scalar;
mod text;
mod wire;

pub use plan::Refusal;
pub use query::form_as_json;
pub use render::{RenderError, ResponsePlan};
pub use request::{Bound, Location, RequestPlan};
pub use wire::WireError;

/// A request that cannot be read at all, as opposed to one that can be read and is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Malformed {
    /// For the integrator: what was found, and where reading stopped.
    pub detail: String,
}

impl Malformed {
    fn new(detail: impl Into<String>) -> Self {
        Self { detail: detail.into() }
    }
}
