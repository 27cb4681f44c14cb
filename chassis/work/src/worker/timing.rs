//! The intervals of background work.

use std::time::Duration;

use chrono::TimeDelta;

/// The intervals of leases, polls and sweeps.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How long a lease lasts unless it is renewed, which happens after a third of it. Measured by the service's clock.
    pub lease: TimeDelta,
    /// How often the loops poll for wake-ups of other processes, due renewals and retries. Real time.
    pub poll: Duration,
    /// How often to sweep all accounts, at least. Also real time.
    pub sweep: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            lease: TimeDelta::seconds(15),
            poll: Duration::from_millis(250),
            sweep: Duration::from_mins(10),
        }
    }
}
