//! How often, and for how long.

use std::time::Duration;

use chrono::TimeDelta;

/// The times of leases and polls.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How long a lease lasts without a sign of life; renewed at a third of it. Measured by the service's clock.
    pub lease: TimeDelta,
    /// How often to ask whether other processes have left work. Real time, whatever the service's clock says.
    pub poll: Duration,
    /// How often to look at all accounts. Real time too.
    pub sweep: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            lease: TimeDelta::seconds(15),
            poll: Duration::from_millis(250),
            sweep: Duration::from_secs(30),
        }
    }
}
