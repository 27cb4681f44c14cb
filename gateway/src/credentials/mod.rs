//! Credentials of internal teams, and the context tokens that they are traded for. One set of operations for the command
//! line and for gRPC. Knows neither REST nor what a service does with a token.

mod rpc;
mod store;
mod tokens;

pub use rpc::Credentials;
pub use tokens::ContextTokens;
