//! What makes an hour entry valid, and which status can follow which. Pure.

use chrono::NaiveDate;
use proto::api::Fault;
use proto::work::{HourInput, HourStatus};
use proto::{At, Faults};
use rust_decimal::prelude::ToPrimitive;
use rust_decimal::{Decimal, RoundingStrategy};

use super::{Values, status_name};
use crate::error::Error;

const MINUTES_PER_HOUR: Decimal = Decimal::from_parts(60, 0, 0, false, 0);
const HOURS_PER_DAY: Decimal = Decimal::from_parts(24, 0, 0, false, 0);

/// A duration in both units. A unit that was sent is kept as it is, and a missing unit is computed from the other.
struct TimeSpent {
    hours: Decimal,
    minutes: i32,
}

/// The values of an entry; its day is `today` unless it names one. `None`, with a fault, when it has no usable time.
pub(super) fn read(given: &HourInput, today: NaiveDate, faults: &mut Faults) -> Option<Values> {
    let at = At::ROOT.name("entry");
    let TimeSpent { hours, minutes } = time_spent(given, &at, faults)?;
    let date = given.date.parse().unwrap_or(today);
    Some(Values { date, hours, minutes, activity_name: given.activity_name.clone() })
}

fn time_spent(given: &HourInput, at: &At<'_>, faults: &mut Faults) -> Option<TimeSpent> {
    let hours = match given.hours.parse::<Decimal>() {
        Ok(hours) if hours <= Decimal::ZERO || hours > HOURS_PER_DAY => {
            faults.add(&at.name("hours"), Fault::OutOfRange, "hours must be more than 0 and at most 24");
            return None;
        }
        hours => hours.ok(),
    };
    match (hours, given.minutes) {
        (None, None) => {
            faults.add(&at.name("hours"), Fault::Required, "hours or minutes is required");
            None
        }
        (Some(hours), None) => Some(TimeSpent { hours, minutes: minutes_of(hours) }),
        (None, Some(minutes)) => Some(TimeSpent { hours: hours_of(minutes), minutes }),
        // Either rounding is accepted: what this service has shown can be sent back.
        (Some(hours), Some(minutes)) if minutes_of(hours) == minutes || hours_of(minutes) == hours => {
            Some(TimeSpent { hours, minutes })
        }
        (Some(hours), Some(_)) => {
            let detail = format!("minutes must mean the same as hours, which is {}", minutes_of(hours));
            faults.add(&at.name("minutes"), Fault::Conflicting, detail);
            None
        }
    }
}

/// Hours in whole minutes, half a minute rounded up; at least 1, because an entry without time is not valid.
fn minutes_of(hours: Decimal) -> i32 {
    let minutes = hours * MINUTES_PER_HOUR;
    let whole = minutes.round_dp_with_strategy(0, RoundingStrategy::MidpointAwayFromZero);
    whole.to_i32().unwrap_or_default().max(1)
}

/// Minutes in hours with two decimals, half a hundredth rounded up.
fn hours_of(minutes: i32) -> Decimal {
    let hours = Decimal::from(minutes) / MINUTES_PER_HOUR;
    hours.round_dp_with_strategy(2, RoundingStrategy::MidpointAwayFromZero).normalize()
}

/// A change of the status of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transition {
    Submit,
    Approve,
    Reject,
    Reopen,
}

impl Transition {
    pub(super) fn target(self) -> HourStatus {
        match self {
            Self::Submit => HourStatus::Submitted,
            Self::Approve => HourStatus::Approved,
            Self::Reject => HourStatus::Rejected,
            Self::Reopen => HourStatus::Draft,
        }
    }

    fn origin(self) -> HourStatus {
        match self {
            Self::Submit => HourStatus::Draft,
            Self::Approve | Self::Reject => HourStatus::Submitted,
            Self::Reopen => HourStatus::Rejected,
        }
    }

    /// Whether an entry of this status changes: `false` when it has the new status already, so that a repetition has no
    /// effect. An error when the transition does not start from its status.
    pub(super) fn changes(self, status: HourStatus) -> Result<bool, Error> {
        if status == self.target() {
            return Ok(false);
        }
        if status == self.origin() {
            return Ok(true);
        }
        let needed = status_name(self.origin());
        let actual = status_name(status);
        Err(Error::WrongStatus(format!("Hours must be {needed} for this; these are {actual}.")))
    }
}

/// Refuses to change an entry that is submitted or approved.
pub(super) fn check_editable(status: HourStatus) -> Result<(), Error> {
    match status {
        HourStatus::Draft | HourStatus::Rejected => Ok(()),
        other => Err(Error::WrongStatus(format!(
            "Only hours that are draft or rejected can be changed; these are {}.",
            status_name(other)
        ))),
    }
}

/// Refuses to remove an entry that is approved.
pub(super) fn check_removable(status: HourStatus) -> Result<(), Error> {
    match status {
        HourStatus::Approved => Err(Error::WrongStatus("Approved hours cannot be removed.".to_owned())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn day() -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 11, 15).unwrap()
    }

    fn entry(hours: &str, minutes: Option<i32>) -> Result<(String, i32), (String, Fault)> {
        let given = HourInput { hours: hours.into(), minutes, ..HourInput::default() };
        let mut faults = Faults::default();
        let read = read(&given, day(), &mut faults);
        match faults.entries().first() {
            Some(fault) => Err((fault.pointer.clone(), fault.code())),
            None => {
                read.map(|values| (values.hours.to_string(), values.minutes)).ok_or_else(|| unreachable!())
            }
        }
    }

    #[test]
    fn hours_and_minutes_follow_from_each_other() {
        for (hours, minutes, expected) in [
            ("1.5", None, ("1.5", 90)),
            ("", Some(90), ("1.5", 90)),
            ("", Some(20), ("0.33", 20)),
            ("0.33", Some(20), ("0.33", 20)),
            ("0.01", None, ("0.01", 1)),
            ("24", None, ("24", 1440)),
        ] {
            let (hours_then, minutes_then) = expected;
            assert_eq!(entry(hours, minutes), Ok((hours_then.to_owned(), minutes_then)));
        }
    }

    #[test]
    fn a_time_is_needed_within_a_day_and_without_contradiction() {
        let at = |field: &str, fault| Err((format!("/entry/{field}"), fault));
        assert_eq!(entry("", None), at("hours", Fault::Required));
        for wrong in ["0", "-1", "24.01"] {
            assert_eq!(entry(wrong, None), at("hours", Fault::OutOfRange), "{wrong}");
        }
        assert_eq!(entry("1.5", Some(91)), at("minutes", Fault::Conflicting));
    }

    #[test]
    fn the_day_is_today_unless_it_is_named() {
        let read = |date: &str| {
            let given = HourInput { date: date.into(), minutes: Some(1), ..HourInput::default() };
            super::read(&given, day(), &mut Faults::default()).unwrap().date.to_string()
        };
        assert_eq!((read(""), read("2020-02-29")), ("2026-11-15".to_owned(), "2020-02-29".to_owned()));
    }

    proptest! {
        #[test]
        fn minutes_are_the_same_after_a_conversion_to_hours_and_back(minutes in 1..=1440_i32) {
            prop_assert_eq!(minutes_of(hours_of(minutes)), minutes);
        }

        #[test]
        fn hours_are_kept_as_they_were_given(hundredths in 1..=2400_i64) {
            let hours = Decimal::new(hundredths, 2).normalize().to_string();
            let (kept, minutes) = entry(&hours, None).unwrap();
            prop_assert_eq!(&kept, &hours);
            prop_assert!((1..=1440).contains(&minutes));
            prop_assert_eq!(entry(&kept, Some(minutes)), Ok((kept.clone(), minutes)), "what was shown can be sent");
        }
    }

    #[test]
    fn every_transition_leads_from_one_status_to_another_and_is_repeatable() {
        let all = [HourStatus::Draft, HourStatus::Submitted, HourStatus::Approved, HourStatus::Rejected];
        let allowed = |transition: Transition| all.map(|status| transition.changes(status).ok()).to_vec();
        assert_eq!(allowed(Transition::Submit), [Some(true), Some(false), None, None]);
        assert_eq!(allowed(Transition::Approve), [None, Some(true), Some(false), None]);
        assert_eq!(allowed(Transition::Reject), [None, Some(true), None, Some(false)]);
        assert_eq!(allowed(Transition::Reopen), [Some(false), None, None, Some(true)]);
    }
}
