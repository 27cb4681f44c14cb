//! The timer of a loop.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior};

/// Ticks immediately and then at every `interval`. Missed ticks are not made up for in a burst.
pub(crate) fn every(interval: Duration) -> Interval {
    let mut ticker = tokio::time::interval(interval);
    ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticker
}
