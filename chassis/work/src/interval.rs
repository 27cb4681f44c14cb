//! The beat of a loop.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior};

/// Ticks at once and then so often. A loop that was held up does not hurry after the ticks that it missed.
pub(crate) fn every(interval: Duration) -> Interval {
    let mut beat = tokio::time::interval(interval);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beat
}
