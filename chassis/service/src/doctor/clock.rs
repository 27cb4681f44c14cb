//! The difference between two clocks. Leases, the expiry of tokens and the order of events depend on it.

use chassis_base::Clock;
use chrono::{DateTime, TimeDelta, Utc};
use proto::api::Finding;

use super::finding::{bad, doubtful, good};

const CLOCK: &str = "clock";
/// NTP keeps clocks far closer than this.
const DOUBTFUL: TimeDelta = TimeDelta::seconds(1);
/// A third of a lease: with a larger difference two processes may both take themselves for the holder.
const BAD: TimeDelta = TimeDelta::seconds(5);

const ADVICE: &str = "Let NTP (chrony, systemd-timesyncd) set the clocks of both machines. Until then work may be done \
                      by two processes in turn, and tokens are refused when clocks are a minute apart.";

/// The duration of a query, on the clock of the process that sends it.
pub struct Span {
    start: DateTime<Utc>,
}

impl Span {
    pub fn begin(clock: &Clock) -> Self {
        Self { start: clock.now() }
    }

    /// The difference to a clock that was read during the query. The reading is assumed to lie in the middle, so half
    /// of the duration is the uncertainty.
    pub fn end(&self, clock: &Clock, read: DateTime<Utc>) -> ClockDifference {
        let half = (clock.now() - self.start) / 2;
        ClockDifference { ahead: read - (self.start + half), uncertainty: half }
    }
}

/// How far another clock is ahead of this process's clock.
pub struct ClockDifference {
    ahead: TimeDelta,
    /// The largest error of `ahead`.
    uncertainty: TimeDelta,
}

/// The finding about the clock of `who`, for example `the database`.
pub fn assess(who: &str, ClockDifference { ahead, uncertainty }: ClockDifference) -> Finding {
    let apart = (ahead.abs() - uncertainty).max(TimeDelta::zero());
    let side = if ahead < TimeDelta::zero() { "behind" } else { "ahead" };
    let tenths = ahead.abs().num_milliseconds() / 100;
    let saw = format!("{who} is {}.{} s {side}", tenths / 10, tenths % 10);
    if apart > BAD {
        bad(CLOCK, saw, ADVICE)
    } else if apart > DOUBTFUL {
        doubtful(CLOCK, saw, ADVICE)
    } else {
        good(CLOCK, saw)
    }
}

#[cfg(test)]
mod tests {
    use proto::api::Outcome;

    use super::*;

    #[test]
    fn a_slow_answer_is_not_taken_for_a_wrong_clock() {
        let assessed = |ahead: i64, uncertain: i64| {
            let difference = ClockDifference {
                ahead: TimeDelta::milliseconds(ahead),
                uncertainty: TimeDelta::milliseconds(uncertain),
            };
            let finding = assess("the database", difference);
            assert_eq!(finding.outcome() == Outcome::Ok, finding.advice.is_empty());
            (finding.outcome(), finding.saw)
        };
        assert_eq!(assessed(120, 3), (Outcome::Ok, "the database is 0.1 s ahead".to_owned()));
        assert_eq!(assessed(-2_050, 10), (Outcome::Warning, "the database is 2.0 s behind".to_owned()));
        assert_eq!(assessed(-2_050, 1_500).0, Outcome::Ok);
        assert_eq!(assessed(6_000, 10).0, Outcome::Failed);
    }
}
