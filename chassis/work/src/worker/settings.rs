//! The settings of background work.

use chrono::TimeDelta;
use clap::Args;

use super::timing::Timing;

/// How background work is divided among processes.
#[derive(Args, Clone, Debug)]
pub struct WorkerSettings {
    /// How long a process keeps its background work without renewing its leases, in milliseconds; then another process
    /// takes it over
    #[arg(long, env = "LEASE_MS", default_value_t = 15_000, value_parser = clap::value_parser!(u32).range(1_000..=600_000), global = true)]
    pub lease_ms: u32,
}

impl WorkerSettings {
    /// The intervals of leases, polls and sweeps.
    pub fn timing(&self) -> Timing {
        Timing { lease: TimeDelta::milliseconds(self.lease_ms.into()), ..Timing::default() }
    }
}
