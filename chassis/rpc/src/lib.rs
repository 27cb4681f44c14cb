//! Calls between processes, on both sides: the context token and the context of a call, the layer in front of every rpc,
//! channels to other services, TLS, and references to records of other services. Does not depend on a database or on
//! any one service.

pub mod call;
pub mod export;
pub mod link;
pub mod mesh;
pub mod outgoing;
pub mod pass;
pub mod peer;
pub mod references;
pub mod scope;
pub mod tls;
pub mod token;
pub mod trace;

pub use call::{Call, Context};
pub use link::Link;
pub use pass::Pass;
