//! Converts times and dates between Rust, the messages and the calendar of an account.

use crate::Timezone;
use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, TimeZone, Utc};
use prost_types::Timestamp;

pub fn timestamp(time: DateTime<Utc>) -> Timestamp {
    Timestamp {
        seconds: time.timestamp(),
        nanos: i32::try_from(time.timestamp_subsec_nanos()).unwrap_or_default(),
    }
}

/// Returns `None` if the timestamp is out of range.
pub fn from_timestamp(timestamp: &Timestamp) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(timestamp.seconds, u32::try_from(timestamp.nanos).ok()?)
}

/// Parses the lower bound of a filter: a time, or a day, which stands for its first moment in the time zone.
pub fn first_moment(text: &str, zone: Timezone) -> Option<DateTime<Utc>> {
    match text.parse::<NaiveDate>() {
        Ok(day) => Some(midnight(day, zone)),
        Err(_) => time(text),
    }
}

/// Parses the upper bound of a filter: a time, or a day, which stands for its last millisecond in the time zone.
pub fn last_moment(text: &str, zone: Timezone) -> Option<DateTime<Utc>> {
    match text.parse::<NaiveDate>() {
        Ok(day) => Some(midnight(day.checked_add_days(Days::new(1))?, zone) - TimeDelta::milliseconds(1)),
        Err(_) => time(text),
    }
}

fn time(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc())
}

/// The first moment of a day in a time zone. If the clock is put forward at midnight, the day begins later. A day
/// that a zone has skipped, for example when it moved across the date line, begins when the next day does.
pub fn midnight(day: NaiveDate, zone: Timezone) -> DateTime<Utc> {
    let local = day.and_time(NaiveTime::MIN);
    let at =
        |hours: i64| zone.from_local_datetime(&local.checked_add_signed(TimeDelta::hours(hours))?).earliest();
    (0..=24).find_map(at).map_or(local.and_utc(), |time| time.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> Timezone {
        name.parse().unwrap()
    }

    #[test]
    fn a_day_is_the_accounts_own_day() {
        let zone = Timezone::AMSTERDAM;
        assert_eq!(first_moment("2026-03-29", zone).unwrap().to_rfc3339(), "2026-03-28T23:00:00+00:00");
        assert_eq!(
            last_moment("2026-03-29", zone).unwrap().to_rfc3339(),
            "2026-03-29T21:59:59.999+00:00",
            "23 hours"
        );
        assert_eq!(
            first_moment("2026-03-29T10:00:00+02:00", zone).unwrap().to_rfc3339(),
            "2026-03-29T08:00:00+00:00"
        );
        assert_eq!((first_moment("", zone), last_moment("", zone)), (None, None));
    }

    #[test]
    fn a_day_without_midnight_begins_with_its_first_hour() {
        let begins = first_moment("2018-11-04", zone("America/Sao_Paulo")).unwrap();
        assert_eq!(begins.to_rfc3339(), "2018-11-04T03:00:00+00:00");
    }

    #[test]
    fn a_day_begins_when_it_becomes_today_in_every_zone() {
        let days = || (0..800).map(|days| NaiveDate::from_ymd_opt(2011, 1, 1).unwrap() + Days::new(days));
        let odd = [
            "Pacific/Apia",
            "America/Havana",
            "Australia/Lord_Howe",
            "Europe/Amsterdam",
            "America/Sao_Paulo",
        ];
        for zone in odd.map(zone) {
            for day in days() {
                let begins = midnight(day, zone);
                let today = |time: DateTime<Utc>| time.with_timezone(&zone).date_naive();
                assert!(today(begins) >= day, "{zone} {day}");
                assert!(today(begins - TimeDelta::milliseconds(1)) < day, "{zone} {day}");
            }
        }
    }
}
