//! Deal sources: where deals come from. A deal keeps the name, whatever becomes of the source.

pub mod rpc;
pub mod store;

/// Most sources of an account.
const MOST: usize = 200;
