//! Cron lines: when a scheduled flow starts next. Pure.

use chassis_base::Timezone;
use chrono::{DateTime, LocalResult, NaiveDateTime, Offset, SubsecRound, TimeDelta, TimeZone, Utc};
use croner::parser::{CronParser, Seconds, Year};

/// The longest cron line, in bytes.
const MAX_LINE: usize = 255;
/// A change of the clocks takes no longer, from the first local time that occurs twice to the last.
const MAX_CLOCK_CHANGE: TimeDelta = TimeDelta::hours(3);

/// The first time after `now` that a cron line matches, or why it matches none. When the clocks change, a line for every
/// hour still matches every hour; a line that names hours matches once, and a local time that is skipped counts at the end
/// of the gap.
pub(crate) fn next(line: &str, now: DateTime<Utc>, zone: Timezone) -> Result<DateTime<Utc>, String> {
    if line.len() > MAX_LINE {
        return Err(format!("it has more than {MAX_LINE} characters"));
    }
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    let cron = parser.parse(line).map_err(|error| error.to_string())?;
    let every_hour = is_every_hour(line);
    // croner keeps the fraction of a second of the time that it starts from.
    let local = |time: DateTime<Utc>| time.trunc_subsecs(0).with_timezone(&zone).naive_local();
    let offset = |time: DateTime<Utc>| zone.offset_from_utc_datetime(&time.naive_utc()).fix();
    let changes = offset(now - MAX_CLOCK_CHANGE) != offset(now + MAX_CLOCK_CHANGE);
    // Searches local times as if the clocks never changed. Near a change it starts earlier, because a local time that
    // occurs twice may be past in its first occurrence and to come in its second.
    let mut clock = if changes { local(now) - MAX_CLOCK_CHANGE } else { local(now) }.and_utc();
    let mut found: Option<DateTime<Utc>> = None;
    loop {
        clock = cron.find_next_occurrence(&clock, false).map_err(|error| error.to_string())?;
        let [first, second] = instants(clock.naive_utc(), zone, every_hour);
        let later = [first, second].into_iter().flatten().filter(|instant| *instant > now).min();
        found = match (found, later) {
            (Some(found), Some(later)) => Some(found.min(later)),
            (found, later) => found.or(later),
        };
        // All further matches are later.
        if let (Some(found), Some(first)) = (found, first)
            && first >= found
        {
            return Ok(found);
        }
    }
}

/// The instants of a local time: one, two when the clocks go back, or none when they go forward.
fn instants(time: NaiveDateTime, zone: Timezone, every_hour: bool) -> [Option<DateTime<Utc>>; 2] {
    match zone.from_local_datetime(&time) {
        LocalResult::Single(instant) => [Some(instant.to_utc()), None],
        LocalResult::Ambiguous(first, second) => [Some(first.to_utc()), every_hour.then(|| second.to_utc())],
        LocalResult::None if every_hour => [None, None],
        // No gap was ever longer than a day.
        LocalResult::None => {
            let after = (1..=2 * 24 * 60).map(|minutes| time + TimeDelta::minutes(minutes));
            let after = after.filter_map(|time| zone.from_local_datetime(&time).earliest());
            [after.map(|instant| instant.to_utc()).next(), None]
        }
    }
}

/// Whether a line does not name hours.
fn is_every_hour(line: &str) -> bool {
    line.trim().eq_ignore_ascii_case("@hourly")
        || line.split_whitespace().nth(1).is_some_and(|hours| hours.starts_with('*'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn next_at(line: &str, now: &str) -> Result<String, String> {
        let now = DateTime::parse_from_rfc3339(now).unwrap().to_utc();
        next(line, now, Timezone::AMSTERDAM).map(|time| time.to_rfc3339())
    }

    #[test]
    fn a_line_is_read_in_the_accounts_zone() {
        assert_eq!(next_at("0 9 * * 1", "2026-11-15T12:00:00Z").unwrap(), "2026-11-16T08:00:00+00:00");
        assert_eq!(next_at("0 9 * * 1", "2026-11-16T07:59:59.9Z").unwrap(), "2026-11-16T08:00:00+00:00");
        assert_eq!(next_at("0 9 * * *", "2026-07-01T07:00:00Z").unwrap(), "2026-07-02T07:00:00+00:00");
        assert_eq!(
            next_at("30 2 * * *", "2026-03-28T12:00:00Z").unwrap(),
            "2026-03-29T01:00:00+00:00",
            "no 2:30 on that day"
        );
    }

    fn zone(name: &str) -> Timezone {
        name.parse().unwrap()
    }

    fn starts(line: &str, zone: Timezone, (from, to): (&str, &str)) -> Vec<DateTime<Utc>> {
        let time = |text: &str| DateTime::parse_from_rfc3339(text).unwrap().to_utc();
        let (mut now, end, mut found) = (time(from), time(to), Vec::new());
        for _ in 0..10_000 {
            now = next(line, now, zone).unwrap();
            if now >= end {
                return found;
            }
            found.push(now);
        }
        panic!("{line} does not come to {to}: the last was {now}");
    }

    #[test]
    fn an_hourly_line_comes_every_hour_also_when_the_clocks_change() {
        for (line, zone) in [
            ("0 * * * *", Timezone::AMSTERDAM),
            ("30 */1 * * *", Timezone::AMSTERDAM),
            ("@hourly", zone("America/New_York")),
            ("15 * * * *", zone("Asia/Kolkata")),
        ] {
            for span in [
                ("2026-03-07T12:00:00Z", "2026-03-09T12:00:00Z"),
                ("2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z"),
                ("2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z"),
                ("2026-10-31T12:00:00Z", "2026-11-02T12:00:00Z"),
            ] {
                let found = starts(line, zone, span);
                assert!((47..=48).contains(&found.len()), "{line} {span:?}: {}", found.len());
                assert!(
                    found.windows(2).all(|pair| pair[1] - pair[0] == TimeDelta::hours(1)),
                    "{line} {found:?}"
                );
            }
        }
        let quarters =
            starts("*/15 * * * *", Timezone::AMSTERDAM, ("2026-10-24T22:00:00Z", "2026-10-25T04:00:00Z"));
        assert!(quarters.windows(2).all(|pair| pair[1] - pair[0] == TimeDelta::minutes(15)), "{quarters:?}");
        assert_eq!(quarters.len(), 23);
    }

    #[test]
    fn a_daily_line_comes_once_a_day_also_when_the_clocks_change() {
        for zone in ["Europe/Amsterdam", "America/New_York", "Australia/Lord_Howe"].map(zone) {
            for line in
                ["30 2 * * *", "0 2 * * *", "59 1 * * *", "30 1 * * *", "0 3 * * *", "0 9 * * *", "0 0 * * *"]
            {
                let found = starts(line, zone, ("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"));
                let days: Vec<_> = found.iter().map(|time| time.with_timezone(&zone).date_naive()).collect();
                assert!(days.windows(2).all(|pair| pair[1] == pair[0].succ_opt().unwrap()), "{zone} {line}");
                assert!((364..=366).contains(&days.len()), "{zone} {line} {}", days.len());
            }
        }
    }

    #[test]
    fn a_text_that_is_not_a_line_or_never_matches_is_refused() {
        for wrong in ["", "every day", "0 9 * *", "0 0 9 * * *", "61 * * * *", "0 0 30 2 *"] {
            assert!(next_at(wrong, "2026-11-15T12:00:00Z").is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic(line in "[0-9*/,#?A-Z -]{0,20}") {
            let _ = next_at(&line, "2026-11-15T12:00:00Z");
        }
    }
}
