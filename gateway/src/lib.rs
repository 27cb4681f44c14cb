//! The REST side of the mesh: one generic pipeline, driven by plans that are computed once from the descriptor.
//! Has no code for any single resource.

pub mod accounts;
pub mod cli;
pub mod credentials;
pub mod doctor;
pub mod http;
pub mod keys;
pub mod ledger;
pub mod limits;
pub mod openapi;
pub mod pages;
pub mod readiness;
pub mod runtime;
pub mod scopes;
pub mod serve;
pub mod settings;
#[cfg(feature = "testing")]
pub mod testing;
mod thresholds;

pub use runtime::{MIGRATIONS, NAME};
pub use serve::serve;
pub use settings::Settings;
