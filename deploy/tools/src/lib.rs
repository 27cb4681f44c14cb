//! What the programs of `deploy/tools` share. Nothing here knows a business word.

pub mod http;
pub mod mesh;
pub mod receiver;
