//! Links: which persons work for which companies. Both ends are clients of the account.

pub mod rpc;
mod rules;
mod store;
