//! Flows that start at their times: when that is, and the worker that sees to it.

use chassis_data::Tx;
use chassis_work::Worker;
use chassis_work::worker::{Due, Job, Next};
use chrono::{DateTime, LocalResult, NaiveDateTime, Offset, SubsecRound, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;
use croner::parser::{CronParser, Seconds, Year};
use serde_json::json;

use super::store;
use crate::event::{self, Event, rfc3339};
use crate::run::start;

/// What everyone else hears of a start.
const RECURRING: &str = "work.recurring";
/// Flows of one account that start in one transaction.
const BATCH: i64 = 50;

/// Starts scheduled flows when their time has come. A time that passed while nobody was there is made up for once.
pub(crate) fn worker() -> Worker {
    let due = Due::new("flow work", "work.next_start_at is not null", "work.next_start_at");
    Worker::new("schedules", due, async |job: Job| {
        let started = job.write(&(), start_due).await?;
        Ok(if started < BATCH { Next::WhenDue } else { Next::Now })
    })
}

async fn start_due(tx: &mut Tx<'_>, (): &()) -> Result<i64, crate::Error> {
    let (account, now, zone) = (tx.account(), tx.now(), tx.settings().timezone);
    tx.unaudited("when it starts next is no change of a flow");
    let due = store::find_scheduled(tx.db(), account, now, BATCH).await?;
    for (flow, planned) in &due {
        let data = json!({"flow_id": flow.id, "flow_name": flow.name, "scheduled_for": rfc3339(*planned)});
        let event = Event {
            id: tx.id(),
            kind: RECURRING.to_owned(),
            entity_type: "flow".to_owned(),
            entity_id: flow.id.to_string(),
            sequence: None,
            data: data.to_string(),
            occurred_at: now,
            depth: 0,
            actor: String::new(),
        };
        start::of_flow(tx, flow, &event).await?;
        event::operations::take(tx, &[event]).await?;
        // A line that was checked may still never come again.
        let following = next(&flow.trigger_key, now, zone).ok();
        store::set_next_start(tx.db(), account, flow.id, following).await?;
    }
    Ok(i64::try_from(due.len()).unwrap_or(i64::MAX))
}

/// The first time after `now` that a cron line names, or why it names none. When the clocks change, a line for every hour
/// goes on every hour; one that names its hours comes once, a time that the clock leaves out at the end of the gap.
pub(crate) fn next(line: &str, now: DateTime<Utc>, zone: Tz) -> Result<DateTime<Utc>, String> {
    if line.len() > 255 {
        return Err("it has more than 255 characters".to_owned());
    }
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    let cron = parser.parse(line).map_err(|error| error.to_string())?;
    let every_hour = is_every_hour(line);
    // What is found would have the same part of a second.
    let local = |time: DateTime<Utc>| time.trunc_subsecs(0).with_timezone(&zone).naive_local();
    let offset = |time: DateTime<Utc>| zone.offset_from_utc_datetime(&time.naive_utc()).fix();
    let changes = offset(now - CHANGE) != offset(now + CHANGE);
    // Times of the clock, one after the other, as if it never changed. An hour that comes twice is behind us once.
    let mut clock = if changes { local(now) - CHANGE } else { local(now) }.and_utc();
    let mut found: Option<DateTime<Utc>> = None;
    loop {
        clock = cron.find_next_occurrence(&clock, false).map_err(|error| error.to_string())?;
        let (first, second) = moments(clock.naive_utc(), zone, every_hour);
        let later = [first, second].into_iter().flatten().filter(|moment| *moment > now).min();
        found = match (found, later) {
            (Some(found), Some(later)) => Some(found.min(later)),
            (found, later) => found.or(later),
        };
        // Those that follow are later still.
        if let (Some(found), Some(first)) = (found, first)
            && first >= found
        {
            return Ok(found);
        }
    }
}

/// No change of the clocks takes longer, from the first time that comes twice to the last.
const CHANGE: TimeDelta = TimeDelta::hours(3);

/// When the clock shows a time: once, twice, or not at all.
fn moments(
    time: NaiveDateTime,
    zone: Tz,
    every_hour: bool,
) -> (Option<DateTime<Utc>>, Option<DateTime<Utc>>) {
    match zone.from_local_datetime(&time) {
        LocalResult::Single(moment) => (Some(moment.to_utc()), None),
        LocalResult::Ambiguous(first, second) => (Some(first.to_utc()), every_hour.then(|| second.to_utc())),
        LocalResult::None if every_hour => (None, None),
        // The longest gap there was took a day.
        LocalResult::None => {
            let after = (1..=2 * 24 * 60).map(|minutes| time + TimeDelta::minutes(minutes));
            let after = after.filter_map(|time| zone.from_local_datetime(&time).earliest());
            (after.map(|moment| moment.to_utc()).next(), None)
        }
    }
}

/// Whether a line leaves the hour open.
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
        next(line, now, chrono_tz::Europe::Amsterdam).map(|time| time.to_rfc3339())
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

    fn starts(line: &str, zone: Tz, (from, to): (&str, &str)) -> Vec<DateTime<Utc>> {
        let time = |text: &str| DateTime::parse_from_rfc3339(text).unwrap().to_utc();
        let (mut now, end, mut found) = (time(from), time(to), Vec::new());
        loop {
            now = next(line, now, zone).unwrap();
            if now >= end {
                return found;
            }
            found.push(now);
        }
    }

    #[test]
    fn an_hourly_line_comes_every_hour_also_when_the_clocks_change() {
        for (line, zone) in [
            ("0 * * * *", chrono_tz::Europe::Amsterdam),
            ("30 */1 * * *", chrono_tz::Europe::Amsterdam),
            ("@hourly", chrono_tz::America::New_York),
            ("15 * * * *", chrono_tz::Asia::Kolkata),
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
        let quarters = starts(
            "*/15 * * * *",
            chrono_tz::Europe::Amsterdam,
            ("2026-10-24T22:00:00Z", "2026-10-25T04:00:00Z"),
        );
        assert!(quarters.windows(2).all(|pair| pair[1] - pair[0] == TimeDelta::minutes(15)), "{quarters:?}");
        assert_eq!(quarters.len(), 23);
    }

    #[test]
    fn a_daily_line_comes_once_a_day_also_when_the_clocks_change() {
        for zone in
            [chrono_tz::Europe::Amsterdam, chrono_tz::America::New_York, chrono_tz::Australia::Lord_Howe]
        {
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
    fn what_is_no_line_or_never_comes_is_refused() {
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
