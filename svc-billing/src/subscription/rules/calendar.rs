//! The calendar of subscriptions: dates at equal intervals. Every date is computed from the anchor and never from the
//! date before it, so that neither a late run nor a short month shifts the dates that follow. Pure: no clock, no time
//! zone.

use chrono::{Datelike, Days, NaiveDate};

/// The last day that can be written with four digits.
const LAST_DAY: NaiveDate = NaiveDate::from_ymd_opt(9999, 12, 31).expect("a valid date");

/// The interval between invoices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Term {
    Weekly,
    FourWeeks,
    Monthly,
    Quarterly,
    HalfYearly,
    Yearly,
}

impl Term {
    pub(crate) const ALL: [Self; 6] =
        [Self::Weekly, Self::FourWeeks, Self::Monthly, Self::Quarterly, Self::HalfYearly, Self::Yearly];

    /// The name in the database and in events.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Weekly => "weekly",
            Self::FourWeeks => "four_weeks",
            Self::Monthly => "monthly",
            Self::Quarterly => "quarterly",
            Self::HalfYearly => "half_yearly",
            Self::Yearly => "yearly",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|term| term.name() == name)
    }

    /// Whether it is a number of weeks; otherwise it is a number of months.
    pub(crate) fn is_of_weeks(self) -> bool {
        matches!(self, Self::Weekly | Self::FourWeeks)
    }

    /// The length, in weeks or in months.
    fn length(self) -> i64 {
        match self {
            Self::Weekly | Self::Monthly => 1,
            Self::Quarterly => 3,
            Self::FourWeeks => 4,
            Self::HalfYearly => 6,
            Self::Yearly => 12,
        }
    }

    /// The number of the week or month that contains a day, counted from the start of the calendar.
    fn index_of(self, date: NaiveDate) -> i64 {
        if self.is_of_weeks() {
            // Day 1 of the calendar is a Monday.
            (i64::from(date.num_days_from_ce()) - 1).div_euclid(7)
        } else {
            i64::from(date.year()) * 12 + i64::from(date.month0())
        }
    }

    /// A day of the week or month with this number; in a month that is too short, its last day.
    fn day_at(self, index: i64, day: u32) -> Option<NaiveDate> {
        let date = if self.is_of_weeks() {
            let days = i32::try_from(index.checked_mul(7)? + i64::from(day)).ok()?;
            NaiveDate::from_num_days_from_ce_opt(days)?
        } else {
            let year = i32::try_from(index.div_euclid(12)).ok()?;
            let first = NaiveDate::from_ymd_opt(year, u32::try_from(index.rem_euclid(12)).ok()? + 1, 1)?;
            first.with_day(day.min(first.num_days_in_month().into()))?
        };
        (date <= LAST_DAY).then_some(date)
    }

    /// The number of a day in its week (1 to 7, Monday is 1) or month.
    pub(crate) fn day_of(self, date: NaiveDate) -> u32 {
        if self.is_of_weeks() { date.weekday().number_from_monday() } else { date.day() }
    }

    /// The first such day on or after `date`.
    pub(crate) fn first_on_or_after(self, date: NaiveDate, day: u32) -> Option<NaiveDate> {
        let index = self.index_of(date);
        let same = self.day_at(index, day).filter(|found| *found >= date);
        same.or_else(|| self.day_at(index + 1, day))
    }
}

/// The dates of a subscription. Date k is on the given day, k terms after the week or month of the anchor. There are
/// no dates after the year 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Series {
    pub term: Term,
    pub anchor: NaiveDate,
    /// Of the month (1 to 31, or the last day of a shorter month) or of the week (1 to 7).
    pub day: u32,
}

impl Series {
    pub(crate) fn date(&self, k: i64) -> Option<NaiveDate> {
        let distance = k.checked_mul(self.term.length())?;
        self.term.day_at(self.term.index_of(self.anchor).checked_add(distance)?, self.day)
    }

    /// The number of the latest date in or before the week or month of a day.
    fn index(&self, date: NaiveDate) -> i64 {
        (self.term.index_of(date) - self.term.index_of(self.anchor)).div_euclid(self.term.length())
    }

    /// The date one term after the date in, or before, the week or month of this day.
    pub(crate) fn after(&self, date: NaiveDate) -> Option<NaiveDate> {
        self.date(self.index(date) + 1)
    }

    pub(crate) fn on_or_after(&self, date: NaiveDate) -> Option<NaiveDate> {
        let k = self.index(date);
        self.date(k).filter(|found| *found >= date).or_else(|| self.date(k + 1))
    }

    pub(crate) fn contains(&self, date: NaiveDate) -> bool {
        self.on_or_after(date) == Some(date)
    }

    /// The last day of the period that begins on a date.
    pub(crate) fn period_end(&self, date: NaiveDate) -> NaiveDate {
        let end = self.after(date).and_then(|next| next.checked_sub_days(Days::new(1)));
        end.unwrap_or(LAST_DAY)
    }
}

#[cfg(test)]
#[path = "calendar_tests.rs"]
mod tests;
