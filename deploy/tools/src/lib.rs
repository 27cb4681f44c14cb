//! What the programs of `deploy/tools` share. Nothing here knows a business word.

pub mod http;
pub mod mesh;
pub mod receiver;

/// Errors are for people who read the terminal.
pub type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;
