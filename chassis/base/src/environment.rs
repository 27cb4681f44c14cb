//! The environment that a process runs in.

/// The environment that a process runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Environment {
    /// One machine without real data: aids for developers are on.
    Development,
    /// Everything that endangers a real business is off: no reflection, no payment sandbox unless it is configured, no
    /// requests to private networks, no mail into files.
    Production,
}
