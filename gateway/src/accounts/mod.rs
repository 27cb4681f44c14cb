//! Accounts and the management of their keys: one set of operations for the command line and for internal teams over
//! gRPC. Knows the services only as peers that want to hear of an account.

mod local;
pub mod provision;
mod rpc;
pub(crate) mod rules;
mod store;

pub use local::local_request;
pub use provision::Unprovisioned;
pub use rpc::Accounts;
pub(crate) use rpc::get;
pub use store::AccountRow;
pub(crate) use store::find;
