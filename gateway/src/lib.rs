pub mod accounts;
pub mod cli;
pub mod keys;
pub mod limits;
pub mod openapi;
pub mod pages;
pub mod scopes;
pub mod serve;
pub mod settings;

pub use serve::{MIGRATIONS, NAME, serve};
pub use settings::Settings;
