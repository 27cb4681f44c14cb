//! A model of billing that walks through the calendar day by day, as a person with a paper calendar would. Shares no
//! arithmetic with the rules that it is compared to.

use chrono::{Datelike, NaiveDate};

use super::calendar::Term;

/// What was agreed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreed {
    pub term: Term,
    pub start: Option<NaiveDate>,
    pub end: Option<NaiveDate>,
    pub first: Option<NaiveDate>,
    /// Of the week or of the month, as the term has it.
    pub day: Option<u32>,
}

/// The dates that follow from what was agreed.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    term: Term,
    day: u32,
    /// Terms are counted from the week or month of this day.
    origin: NaiveDate,
    /// No date before this one.
    from: NaiveDate,
    /// A first date that is not one of the days, and whose own week or month has no other.
    beside: Option<NaiveDate>,
}

fn matches(term: Term, day: u32, date: NaiveDate) -> bool {
    if term.is_of_weeks() {
        return date.weekday().number_from_monday() == day;
    }
    let is_last = date.succ_opt().unwrap().day() == 1;
    date.day() == day || (is_last && date.day() < day)
}

fn day_of(term: Term, date: NaiveDate) -> u32 {
    if term.is_of_weeks() { date.weekday().number_from_monday() } else { date.day() }
}

fn first_match(term: Term, day: u32, from: NaiveDate) -> NaiveDate {
    from.iter_days().find(|date| matches(term, day, *date)).unwrap()
}

impl Schedule {
    /// Its dates in order, as an endless iterator.
    fn dates(self) -> impl Iterator<Item = NaiveDate> {
        let every = match self.term {
            Term::Weekly | Term::Monthly => 1,
            Term::Quarterly => 3,
            Term::FourWeeks => 4,
            Term::HalfYearly => 6,
            Term::Yearly => 12,
        };
        let mut turned = 0;
        self.origin.iter_days().filter(move |date| {
            let turns =
                if self.term.is_of_weeks() { date.weekday().number_from_monday() } else { date.day() } == 1;
            turned += i32::from(turns && *date > self.origin);
            if let Some(beside) = self.beside.filter(|_| turned == 0) {
                return *date == beside;
            }
            *date >= self.from && turned % every == 0 && matches(self.term, self.day, *date)
        })
    }
}

#[derive(Debug)]
pub(crate) struct Model {
    pub agreed: Agreed,
    /// The first and the last day that each invoice covers.
    pub invoices: Vec<(NaiveDate, NaiveDate)>,
    schedule: Option<Schedule>,
    pub ended: bool,
}

impl Model {
    pub(crate) fn new(agreed: Agreed) -> Self {
        Self { agreed, invoices: Vec::new(), schedule: None, ended: false }
    }

    pub(crate) fn is_draft(&self) -> bool {
        self.schedule.is_none() && !self.ended
    }

    pub(crate) fn activate(&mut self, today: NaiveDate) {
        let start = self.agreed.first.map_or(today, |first| first.min(today));
        self.agreed.start.get_or_insert(start);
        self.begin(today);
    }

    /// The schedule of a subscription that has no invoice yet.
    fn begin(&mut self, floor: NaiveDate) {
        let Agreed { term, first, day, .. } = self.agreed;
        let start = self.agreed.start.unwrap();
        let own_day = day.unwrap_or(day_of(term, start));
        let origin = first_match(term, own_day, start);
        let own = Schedule { term, day: own_day, origin, from: start.max(floor), beside: None };
        self.schedule = Some(match first {
            None => own,
            Some(first) => {
                let all = Schedule { from: start, ..own };
                if all.dates().take_while(|date| *date <= first).any(|date| date == first) {
                    Schedule { from: first, ..own }
                } else {
                    let day = day.unwrap_or(day_of(term, first));
                    Schedule { term, day, origin: first, from: first, beside: Some(first) }
                }
            }
        });
    }

    /// Changes the agreement from today on.
    pub(crate) fn change(&mut self, agreed: Agreed, today: NaiveDate) {
        let before = std::mem::replace(&mut self.agreed, agreed);
        let Some(schedule) = self.schedule else { return };
        let Some((_, billed)) = self.invoices.last().copied() else {
            let next = schedule.dates().next().filter(|date| before.end.is_none_or(|end| *date <= end));
            return self.begin(next.map_or(today, |next| next.min(today)));
        };
        let Agreed { term, day, .. } = agreed;
        if (term, agreed.start, day) == (before.term, before.start, before.day) {
            return;
        }
        let start = agreed.start.unwrap();
        let same_kind = term.is_of_weeks() == before.term.is_of_weeks();
        let kept = before.start == agreed.start && before.day.is_none() && same_kind;
        let day = day.unwrap_or(if kept { schedule.day } else { day_of(term, start) });
        let origin = first_match(term, day, start.max(billed.succ_opt().unwrap()));
        self.schedule = Some(Schedule { term, day, origin, from: origin, beside: None });
    }

    /// The next date, and the one after it.
    fn upcoming(&self) -> Option<(NaiveDate, NaiveDate)> {
        let billed = self.invoices.last().map(|(_, to)| *to);
        let mut dates =
            self.schedule?.dates().skip_while(|date| billed.is_some_and(|billed| *date <= billed));
        let next = dates.next().filter(|date| self.agreed.end.is_none_or(|end| *date <= end))?;
        Some((next, dates.next()?))
    }

    pub(crate) fn next(&self) -> Option<NaiveDate> {
        self.upcoming().map(|(next, _)| next)
    }

    /// Creates the invoices that are due.
    pub(crate) fn run(&mut self, today: NaiveDate) {
        while let Some((from, following)) = self.upcoming().filter(|(next, _)| *next <= today) {
            let to = from.iter_days().take_while(|date| *date < following);
            let to = to.take_while(|date| self.agreed.end.is_none_or(|end| *date <= end)).last().unwrap();
            self.invoices.push((from, to));
        }
        self.ended |= self.schedule.is_some()
            && self.next().is_none()
            && self.agreed.end.is_some_and(|end| end < today);
    }

    /// The days after the last billed one until the next date, or the end, counted one by one.
    pub(crate) fn unbilled_days(&self) -> i64 {
        let Some((_, billed)) = self.invoices.last() else { return 0 };
        let (next, end) = (self.next(), self.agreed.end);
        if next.is_none() && end.is_none() {
            return 0;
        }
        let open = |date: &NaiveDate| next.map_or(end.is_some_and(|end| *date <= end), |next| *date < next);
        billed.iter_days().skip(1).take_while(open).map(|_| 1).sum()
    }
}
