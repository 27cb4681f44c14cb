//! JSON to protobuf wire bytes and back, by plans that are computed once from the descriptor.
//!
//! Owns the public operations of the contract, the JSON shapes and the locations of faults, for the gateway and for
//! callers that name an rpc.
//! Pure: does not depend on a server, a service or a resource. No input, from clients or services, causes a panic.

mod body;
pub mod contract;
mod entries;
mod expand;
mod json;
mod malformed;
mod numbers;
mod operation;
mod plan;
mod query;
pub mod records;
mod render;
mod request;
mod scalar;
mod table;
mod text;
mod unknown;
mod wire;

pub use expand::{EXPAND, Expansion};
pub use malformed::Malformed;
pub use plan::Refusal;
pub use query::{form_as_json, path_segment};
pub use render::{Form, RenderError, ResponsePlan};
pub use request::{Bound, Location, PAGE, RequestPlan};
pub use table::TableFormat;
pub use unknown::{Handling, Ignored};
pub use wire::WireError;
