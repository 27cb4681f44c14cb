//! The timer of a loop.

use std::sync::LazyLock;
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Ticks immediately and then at every multiple of `interval` since the start of the process: the loops of an idle process
/// wake it together, and not each for itself. Missed ticks are left out.
pub(crate) fn every(interval: Duration) -> Interval {
    let mut ticker = interval_at(*START + last_multiple(START.elapsed(), interval), interval);
    ticker.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticker
}

fn last_multiple(elapsed: Duration, interval: Duration) -> Duration {
    let since = elapsed.as_nanos().checked_rem(interval.as_nanos()).unwrap_or_default();
    elapsed.saturating_sub(Duration::from_nanos(u64::try_from(since).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_that_begin_at_different_times_tick_together() {
        let interval = Duration::from_millis(250);
        let first = [0, 1, 249, 250, 499, 500, 1_000_001]
            .map(|begin| last_multiple(Duration::from_millis(begin), interval).as_millis());
        assert_eq!(first, [0, 0, 0, 250, 250, 500, 1_000_000]);
    }
}
