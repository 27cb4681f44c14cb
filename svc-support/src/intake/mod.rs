//! Taking mail in: what a mail says, which ticket it belongs to, and storing it there. Knows nothing of SMTP.

mod automatic;
mod find;
pub mod mail;
mod operations;
pub mod rpc;

pub use find::without_detail;

/// Bytes of a mail that is taken in.
pub const MOST: usize = 25 << 20;
