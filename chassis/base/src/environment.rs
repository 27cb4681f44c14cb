//! Where the process runs.

/// Where the process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Environment {
    /// One machine, no real business: what helps a developer is on.
    Development,
    /// Nothing is on that would be a danger to a business: no reflection, no payment sandbox by itself, no requests to
    /// private networks, no mail into files.
    Production,
}
