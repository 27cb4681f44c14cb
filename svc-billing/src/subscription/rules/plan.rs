//! The plan of a subscription: what was agreed, what has been billed, and what is due next.

use chrono::{Days, NaiveDate};

use super::calendar::{Series, Term};
use crate::document::Period;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Draft,
    Active,
    /// Final. Dates up to its end are still billed.
    Ended,
}

impl Status {
    const NAMES: [(Self, &'static str); 3] =
        [(Self::Draft, "draft"), (Self::Active, "active"), (Self::Ended, "ended")];

    /// The name in the database and in events.
    pub(crate) fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|(status, _)| *status == self).map_or("", |(_, name)| name)
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(_, known)| *known == name).map(|(status, _)| status)
    }
}

/// The plan of one subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub term: Term,
    /// A draft may have none yet.
    pub start: Option<NaiveDate>,
    /// The last day, included.
    pub end: Option<NaiveDate>,
    /// The first invoice date, if the caller chose it.
    pub first: Option<NaiveDate>,
    pub day_of_month: Option<u32>,
    pub day_of_week: Option<u32>,
    pub status: Status,
    /// `None` before it is active.
    pub series: Option<Series>,
    /// The latest invoice date so far.
    pub last: Option<NaiveDate>,
    /// The last day that an invoice covers.
    pub billed_until: Option<NaiveDate>,
    /// The next invoice date; `None` when there is none any more.
    pub next: Option<NaiveDate>,
}

/// What a plan demands on a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// An invoice for this period, dated on its first day.
    Bill(Period),
    /// The end of the subscription.
    End,
    Nothing,
}

impl Plan {
    /// The day of the week or month that the caller chose.
    fn day(&self) -> Option<u32> {
        if self.term.is_of_weeks() { self.day_of_week } else { self.day_of_month }
    }

    /// Activates the plan. A plan without a start starts today, or on its first invoice date if that is in the past.
    pub(crate) fn activate(&mut self, today: NaiveDate) {
        self.start.get_or_insert(self.first.map_or(today, |first| first.min(today)));
        self.status = Status::Active;
        self.begin(today);
    }

    /// Determines the series of dates and the first of them. No date before `floor` is billed, unless the caller
    /// chose it as the first date.
    fn begin(&mut self, floor: NaiveDate) {
        let Some(start) = self.start else { return };
        let anchor = self.day().map_or(Some(start), |day| self.term.first_on_or_after(start, day));
        let day = self.day().unwrap_or(self.term.day_of(start));
        // There is no such day only at the end of the calendar.
        let own = Series { term: self.term, anchor: anchor.unwrap_or(start), day };
        let (series, next) = match self.first {
            None => (own, own.on_or_after(start.max(floor))),
            Some(first) if own.contains(first) => (own, Some(first)),
            // A first date that is not in the series: the others follow at whole terms from it, on the chosen day.
            Some(first) => {
                let day = self.day().unwrap_or(self.term.day_of(first));
                (Series { term: self.term, anchor: first, day }, Some(first))
            }
        };
        self.series = Some(series);
        self.next = self.within_end(next);
    }

    /// To be called after the agreement has changed; `before` is the plan before that. Billed periods stay billed,
    /// and no day is billed twice: a changed schedule starts with its first day after the last billed one.
    pub(crate) fn changed(&mut self, before: &Self, today: NaiveDate) {
        let Some(old) = before.series else { return };
        let Some(billed) = self.billed_until else {
            // A date that is already due is kept, although the worker is late.
            return self.begin(before.next.map_or(today, |next| next.min(today)));
        };
        let Some(unbilled) = billed.succ_opt() else {
            self.next = None;
            return;
        };
        let days = |plan: &Self| (plan.term, plan.start, plan.day_of_month, plan.day_of_week);
        if days(self) == days(before) {
            // A series that was started by an earlier change has no dates before its anchor.
            self.next = self.within_end(old.on_or_after(unbilled.max(old.anchor)));
            return;
        }
        let start = self.start.unwrap_or(unbilled);
        let kept = self.start == before.start
            && before.day().is_none()
            && self.term.is_of_weeks() == before.term.is_of_weeks();
        let otherwise = if kept { old.day } else { self.term.day_of(start) };
        let day = self.day().unwrap_or(otherwise);
        let next = self.term.first_on_or_after(unbilled.max(start), day);
        self.series = Some(Series { term: self.term, anchor: next.unwrap_or(unbilled), day });
        self.next = self.within_end(next);
    }

    /// The number of days after the last billed one that no invoice covers: up to the next date, or to the end if
    /// there is no next date.
    pub(crate) fn unbilled_days(&self) -> i64 {
        let Some(billed) = self.billed_until else { return 0 };
        let until = self.next.and_then(|next| next.pred_opt()).or(self.end);
        until.map_or(0, |until| (until - billed).num_days().max(0))
    }

    /// Ends the plan after this day, which is final.
    pub(crate) fn end_on(&mut self, day: NaiveDate, today: NaiveDate) {
        let before = *self;
        self.status = Status::Ended;
        self.end = Some(day);
        self.changed(&before, today);
    }

    fn within_end(&self, date: Option<NaiveDate>) -> Option<NaiveDate> {
        date.filter(|date| self.end.is_none_or(|end| *date <= end))
    }

    /// What is to be done today.
    pub(crate) fn turn(&self, today: NaiveDate) -> Turn {
        match (self.period(), self.end) {
            (Some(period), _) if period.from <= today => Turn::Bill(period),
            (None, Some(end)) if self.is_running() && end < today => Turn::End,
            _ => Turn::Nothing,
        }
    }

    fn is_running(&self) -> bool {
        self.status == Status::Active && self.series.is_some()
    }

    /// The period of the next invoice.
    fn period(&self) -> Option<Period> {
        let (from, series) = self.next.zip(self.series)?;
        let to = series.period_end(from);
        Some(Period { from, to: self.end.map_or(to, |end| to.min(end)) })
    }

    /// To be called when the next date has its invoice.
    pub(crate) fn billed(&mut self) {
        let (Some(billed), Some(series)) = (self.period(), self.series) else { return };
        (self.last, self.billed_until) = (Some(billed.from), Some(billed.to));
        self.next = self.within_end(series.after(billed.from));
    }

    /// The next day on which something is to be done.
    pub(crate) fn due_on(&self) -> Option<NaiveDate> {
        match self.status {
            Status::Draft => None,
            _ if self.next.is_some() => self.next,
            Status::Active => self.end.and_then(|end| end.checked_add_days(Days::new(1))),
            Status::Ended => None,
        }
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
