//! When a subscription makes its invoices: what was agreed, how far it has got, and what is to be done next.

use chrono::{Days, NaiveDate};

use super::calendar::{Series, Term};
use crate::document::Period;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Draft,
    Active,
    /// Final. Dates up to its end are still billed.
    Ended,
}

/// The plan of one subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    pub term: Term,
    /// A draft may have none yet.
    pub start: Option<NaiveDate>,
    /// The last day, included.
    pub end: Option<NaiveDate>,
    /// The first invoice date, when the caller chose it.
    pub first: Option<NaiveDate>,
    pub day_of_month: Option<u32>,
    pub day_of_week: Option<u32>,
    pub status: Status,
    /// None before it is active.
    pub series: Option<Series>,
    /// The latest invoice date so far.
    pub last: Option<NaiveDate>,
    /// The next one; none when there will be no more.
    pub next: Option<NaiveDate>,
}

/// What a plan asks for on a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// An invoice for this period, dated on its first day.
    Bill(Period),
    /// It has come to its end.
    End,
    Nothing,
}

impl Plan {
    /// The day of the week or month that was asked for.
    fn day(&self) -> Option<u32> {
        if self.term.is_of_weeks() { self.day_of_week } else { self.day_of_month }
    }

    /// Becomes active. One that has no start yet starts today, or with its first invoice if that is in the past.
    pub fn activate(&mut self, today: NaiveDate) {
        self.start.get_or_insert(self.first.map_or(today, |first| first.min(today)));
        self.status = Status::Active;
        self.begin(today);
    }

    /// Finds the dates and the first of them. Nothing before `floor` is billed, unless the caller chose the first date.
    fn begin(&mut self, floor: NaiveDate) {
        let Some(start) = self.start else { return };
        let anchor = self.day().map_or(Some(start), |day| self.term.first_on_or_after(start, day));
        let day = self.day().unwrap_or(self.term.day_of(start));
        // Only at the end of all years there is no such day.
        let own = Series { term: self.term, anchor: anchor.unwrap_or(start), day };
        let (series, next) = match self.first {
            None => (own, own.on_or_after(start.max(floor))),
            Some(first) if own.contains(first) => (own, Some(first)),
            // A first date beside the schedule: the others follow at whole terms from it, on the day asked for.
            Some(first) => {
                let day = self.day().unwrap_or(self.term.day_of(first));
                (Series { term: self.term, anchor: first, day }, Some(first))
            }
        };
        self.series = Some(series);
        self.next = self.within_end(next);
    }

    /// To be called after what was agreed has changed; `before` is how it was. What was billed stays billed: the change
    /// counts from the first period without an invoice.
    pub fn changed(&mut self, before: &Self, today: NaiveDate) {
        let Some(old) = before.series else { return };
        let Some(last) = self.last else {
            // A date that is due already is not lost because the run is late.
            return self.begin(before.next.map_or(today, |next| next.min(today)));
        };
        let due = old.after(last);
        let days = |plan: &Self| (plan.term, plan.start, plan.day_of_month, plan.day_of_week);
        if days(self) == days(before) {
            self.next = self.within_end(due);
            return;
        }
        let start = self.start.unwrap_or(last);
        let kept = self.start == before.start
            && before.day().is_none()
            && self.term.is_of_weeks() == before.term.is_of_weeks();
        let otherwise = if kept { old.day } else { self.term.day_of(start) };
        let series =
            Series { term: self.term, anchor: due.unwrap_or(last), day: self.day().unwrap_or(otherwise) };
        let next = series.date(0).filter(|date| *date > last).or_else(|| series.date(1));
        let next = next.and_then(|date| if date < start { series.on_or_after(start) } else { Some(date) });
        self.series = Some(series);
        self.next = self.within_end(next);
    }

    /// Ends it for ever, after this day.
    pub fn end_on(&mut self, day: NaiveDate, today: NaiveDate) {
        let before = *self;
        self.status = Status::Ended;
        self.end = Some(day);
        self.changed(&before, today);
    }

    fn within_end(&self, date: Option<NaiveDate>) -> Option<NaiveDate> {
        date.filter(|date| self.end.is_none_or(|end| *date <= end))
    }

    /// What is to be done.
    pub fn turn(&self, today: NaiveDate) -> Turn {
        match (self.next, self.series, self.end) {
            (Some(from), Some(series), end) if from <= today => {
                let to = series.period_end(from);
                Turn::Bill(Period { from, to: end.map_or(to, |end| to.min(end)) })
            }
            (None, Some(_), Some(end)) if self.status == Status::Active && end < today => Turn::End,
            _ => Turn::Nothing,
        }
    }

    /// The next date has its invoice.
    pub fn billed(&mut self) {
        let (Some(billed), Some(series)) = (self.next, self.series) else { return };
        self.last = Some(billed);
        self.next = self.within_end(series.after(billed));
    }

    /// The day on which there is something to be done.
    pub fn due_on(&self) -> Option<NaiveDate> {
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
