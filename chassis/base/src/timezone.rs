//! The time zones of the IANA database, for chrono.
//!
//! The rules are used where they lie in the program (tzdb_data, tz-rs). Tables with pointers, as chrono-tz has them, are written
//! by the loader at the start of each program, which then holds more than a megabyte for zones that nobody asks for.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use chrono::{
    Datelike, FixedOffset, MappedLocalTime, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeZone, Timelike,
    Utc,
};
use tz::datetime::{DateTime, FoundDateTimeKind};
use tz::{LocalTimeType, TimeZoneRef, TzError};
use tzdb_data::time_zone;

/// A time zone of the IANA database, with its rules of the past and of the future.
#[derive(Clone, Copy)]
pub struct Timezone {
    name: &'static str,
    rules: &'static TimeZoneRef<'static>,
}

/// The text is not the name of a time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not the IANA name of a time zone, such as Europe/Amsterdam")]
pub struct UnknownTimezone;

impl Timezone {
    pub const AMSTERDAM: Self = Self { name: "Europe/Amsterdam", rules: &time_zone::europe::AMSTERDAM };
    pub const UTC: Self = Self { name: "UTC", rules: &time_zone::UTC };

    /// The IANA name, such as `Europe/Amsterdam`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The moments at which the clocks show a time, in their order: none when it is skipped, two when it is repeated.
    fn moments(&self, local: &NaiveDateTime) -> Result<MappedLocalTime<TimezoneOffset>, TzError> {
        let small = |number: u32| u8::try_from(number).unwrap_or(u8::MAX);
        let mut found = [None; 4];
        DateTime::find_n(
            &mut found,
            local.year(),
            small(local.month()),
            small(local.day()),
            small(local.hour()),
            small(local.minute()),
            small(local.second()),
            0,
            *self.rules,
        )?;
        let mut offsets = found.iter().flatten().filter_map(|found| match found {
            FoundDateTimeKind::Normal(time) => Some(self.offset(time.local_time_type().ut_offset())),
            FoundDateTimeKind::Skipped { .. } => None,
        });
        Ok(match (offsets.next(), offsets.next()) {
            (Some(first), Some(second)) => MappedLocalTime::Ambiguous(first, second),
            (Some(only), None) => MappedLocalTime::Single(only),
            (None, _) => MappedLocalTime::None,
        })
    }

    fn offset(&self, seconds: i32) -> TimezoneOffset {
        // No zone has ever been a day away from UTC.
        let fixed = FixedOffset::east_opt(seconds).unwrap_or_else(|| Utc.fix());
        TimezoneOffset { zone: *self, fixed }
    }
}

impl TimeZone for Timezone {
    type Offset = TimezoneOffset;

    fn from_offset(offset: &TimezoneOffset) -> Self {
        offset.zone
    }

    fn offset_from_local_date(&self, local: &NaiveDate) -> MappedLocalTime<TimezoneOffset> {
        self.offset_from_local_datetime(&local.and_time(NaiveTime::MIN))
    }

    fn offset_from_local_datetime(&self, local: &NaiveDateTime) -> MappedLocalTime<TimezoneOffset> {
        self.moments(local).unwrap_or(MappedLocalTime::None)
    }

    fn offset_from_utc_date(&self, utc: &NaiveDate) -> TimezoneOffset {
        self.offset_from_utc_datetime(&utc.and_time(NaiveTime::MIN))
    }

    fn offset_from_utc_datetime(&self, utc: &NaiveDateTime) -> TimezoneOffset {
        // Every zone has a rule for ever.
        let rule = self.rules.find_local_time_type(utc.and_utc().timestamp());
        self.offset(rule.map_or(0, LocalTimeType::ut_offset))
    }
}

impl FromStr for Timezone {
    type Err = UnknownTimezone;

    /// Names are as the database writes them, those of former times too.
    fn from_str(name: &str) -> Result<Self, UnknownTimezone> {
        let place = tzdb_data::TZ_NAMES.binary_search_by(|known| order(known).cmp(order(name)));
        let known = place.ok().map(|index| tzdb_data::TZ_NAMES[index]);
        let name = known.filter(|known| *known == name).ok_or(UnknownTimezone)?;
        let rules = tzdb_data::find_tz(name.as_bytes()).ok_or(UnknownTimezone)?;
        Ok(Self { name, rules })
    }
}

/// What the names of the database are in the order of.
fn order(name: &str) -> impl Iterator<Item = u8> {
    name.bytes().map(|byte| byte.to_ascii_lowercase())
}

/// A name has one set of rules.
impl PartialEq for Timezone {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Timezone {}

impl Hash for Timezone {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for Timezone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

impl fmt::Display for Timezone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

/// How far a zone is from UTC at a moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TimezoneOffset {
    zone: Timezone,
    fixed: FixedOffset,
}

impl Offset for TimezoneOffset {
    fn fix(&self) -> FixedOffset {
        self.fixed
    }
}

impl fmt::Debug for TimezoneOffset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.fixed, formatter)
    }
}

impl fmt::Display for TimezoneOffset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.fixed, formatter)
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};
    use chrono_tz::{TZ_VARIANTS, Tz};
    use proptest::prelude::*;

    use super::*;

    /// 1970 to 2024: what was decided later, only one of the two may know.
    const SECONDS: std::ops::Range<i64> = 0..1_735_689_600;

    /// Zones whose past the database has corrected between the two releases: Baja California to 1975, Moldova from 2022.
    const CORRECTED: [&str; 6] = [
        "America/Ensenada",
        "America/Santa_Isabel",
        "America/Tijuana",
        "Europe/Chisinau",
        "Europe/Tiraspol",
        "Mexico/BajaNorte",
    ];

    /// A zone and a moment: half of them are within a day of a change of its clocks.
    fn zone_and_moment() -> impl Strategy<Value = (Tz, i64)> {
        let zones = TZ_VARIANTS.into_iter().filter(|zone| !CORRECTED.contains(&zone.name()));
        (prop::sample::select(zones.collect::<Vec<_>>()), SECONDS, any::<bool>(), -86_400..86_400_i64)
            .prop_map(|(zone, seconds, is_near, distance)| {
                let ours: Timezone = zone.name().parse().unwrap();
                let changes = ours.rules.transitions().iter().map(tz::timezone::Transition::unix_leap_time);
                let next = changes.filter(|_| is_near).find(|change| *change > seconds);
                (zone, next.map_or(seconds, |change| change + distance).clamp(SECONDS.start, SECONDS.end))
            })
    }

    fn moment(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    #[test]
    fn the_names_are_in_order_and_each_has_rules_for_ever() {
        assert!(tzdb_data::TZ_NAMES.is_sorted_by(|a, b| order(a).lt(order(b))));
        let late = moment(253_402_300_799).timestamp();
        for name in tzdb_data::TZ_NAMES {
            let zone: Timezone = name.parse().unwrap();
            assert_eq!((zone.name(), zone.to_string()), (*name, (*name).to_owned()));
            zone.rules.find_local_time_type(late).unwrap();
        }
        for zone in [Timezone::UTC, Timezone::AMSTERDAM] {
            let named: Timezone = zone.name().parse().unwrap();
            assert_eq!(named.rules, zone.rules);
        }
    }

    #[test]
    fn other_texts_are_not_the_name_of_a_zone() {
        for name in ["", "europe/amsterdam", "Europe", "Europe/Amsterdam ", "+01:00", "Mars/Olympus"] {
            assert_eq!(name.parse::<Timezone>(), Err(UnknownTimezone), "{name}");
        }
    }

    #[test]
    fn every_name_of_another_library_is_known() {
        for zone in TZ_VARIANTS {
            assert!(zone.name().parse::<Timezone>().is_ok(), "{}", zone.name());
        }
    }

    #[test]
    fn clocks_go_on_changing_when_the_table_has_ended() {
        let offset = |time: &str| {
            let time: DateTime<Utc> = time.parse().unwrap();
            time.with_timezone(&Timezone::AMSTERDAM).offset().to_string()
        };
        assert_eq!(offset("2099-07-01T00:00:00Z"), "+02:00");
        assert_eq!(offset("2099-12-01T00:00:00Z"), "+01:00");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        /// chrono-tz is an independent reading of the same database.
        #[test]
        fn clocks_show_what_another_library_says((zone, seconds) in zone_and_moment()) {
            let ours: Timezone = zone.name().parse().unwrap();
            let time = moment(seconds);
            prop_assert_eq!(time.with_timezone(&ours).naive_local(), time.with_timezone(&zone).naive_local());
            let local = time.naive_utc();
            let moments = |found: MappedLocalTime<DateTime<Utc>>| (found.earliest(), found.latest());
            prop_assert_eq!(
                moments(ours.from_local_datetime(&local).map(|time| time.to_utc())),
                moments(zone.from_local_datetime(&local).map(|time: DateTime<Tz>| time.to_utc()))
            );
        }
    }
}
