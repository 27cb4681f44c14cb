//! Taking mail in: what a mail says, which ticket it belongs to, and storing it there. Knows nothing of SMTP.

mod automatic;
pub mod bounded;
mod find;
pub mod mail;
pub mod memory;
mod operations;
pub mod rpc;

pub use find::without_detail;

use memory::Memory;

/// Bytes of a mail that is taken in, when there is memory for it.
pub const MOST: usize = 25 << 20;

/// Bytes of a mail that is taken in.
pub fn max_bytes(memory: &Memory) -> usize {
    MOST.min(memory.share())
}
