//! Whole lives of subscriptions, with changes of every kind and runs at any time, against a model with a paper
//! calendar.

use std::collections::HashSet;

use chassis_base::update_mask::UpdateMask;
use chrono::{Days, NaiveDate, TimeDelta};
use proptest::prelude::*;
use proto::billing::SubscriptionPatch;
use proto::{At, Faults};

use super::calendar::Term;
use super::change_model::{Agreed, Model};
use super::plan::{Plan, Status, Turn};
use super::terms;

/// What happens to a subscription. Days count from the day on which it happens.
#[derive(Clone, Debug)]
enum Step {
    Frequency(usize),
    /// Of the week or of the month, as the term has it; `None` is that of the start.
    Day(Option<i32>),
    Start(i64),
    End(Option<i64>),
    Activate,
    Deactivate(Option<i64>),
    /// Time passes, and the worker may run.
    Days(u64, bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..6_usize).prop_map(Step::Frequency),
        3 => proptest::option::weighted(0.8, 1..32_i32).prop_map(Step::Day),
        2 => (-60..120_i64).prop_map(Step::Start),
        2 => proptest::option::of(-20..300_i64).prop_map(Step::End),
        1 => Just(Step::Activate),
        1 => proptest::option::of(-5..200_i64).prop_map(Step::Deactivate),
        6 => (0..75_u64, proptest::bool::weighted(0.8)).prop_map(|(days, run)| Step::Days(days, run)),
        1 => (300..500_u64).prop_map(|days| Step::Days(days, true)),
    ]
}

/// A subscription beside its model.
struct Life {
    today: NaiveDate,
    plan: Plan,
    model: Model,
    /// The unbilled days in the latest answer.
    told: i64,
    billed: HashSet<NaiveDate>,
}

impl Life {
    fn new(agreed: Agreed, today: NaiveDate, starts: bool) -> Self {
        let of_weeks = agreed.term.is_of_weeks();
        let plan = Plan {
            term: agreed.term,
            start: agreed.start,
            end: agreed.end,
            first: agreed.first,
            day_of_month: agreed.day.filter(|_| !of_weeks),
            day_of_week: agreed.day.filter(|_| of_weeks),
            status: Status::Draft,
            series: None,
            last: None,
            billed_until: None,
            next: None,
        };
        let mut life = Self { today, plan, model: Model::new(agreed), told: 0, billed: HashSet::new() };
        if starts {
            life.activate();
        }
        life
    }

    fn activate(&mut self) {
        if self.model.is_draft() && self.plan.status == Status::Draft {
            self.plan.activate(self.today);
            self.model.activate(self.today);
        }
    }

    fn at(&self, days: i64) -> NaiveDate {
        self.today + TimeDelta::days(days)
    }

    fn take(&mut self, step: &Step) {
        let mut given = SubscriptionPatch::default();
        let names: &[&str] = match step {
            Step::Frequency(term) => {
                given.set_frequency(terms::to_message(Term::ALL[*term]));
                // A day of the other kind has to go with its term.
                if Term::ALL[*term].is_of_weeks() {
                    &["frequency", "day_of_month"]
                } else {
                    &["frequency", "day_of_week"]
                }
            }
            Step::Day(day) if self.plan.term.is_of_weeks() => {
                given.day_of_week = day.map(|day| (day - 1) % 7 + 1);
                &["day_of_week"]
            }
            Step::Day(day) => {
                given.day_of_month = *day;
                &["day_of_month"]
            }
            Step::Start(days) => {
                given.subscription_start = self.at(*days).to_string();
                &["subscription_start"]
            }
            Step::End(days) => {
                given.subscription_end = days.map(|days| self.at(days).to_string()).unwrap_or_default();
                &["subscription_end"]
            }
            Step::Activate => return self.activate(),
            Step::Deactivate(days) => return self.deactivate(*days),
            Step::Days(days, runs) => {
                self.today = self.today + Days::new(*days);
                if *runs {
                    self.run();
                }
                return;
            }
        };
        self.patch(&given, names);
    }

    /// Applies a change as the operation does; a refused change has no effect.
    fn patch(&mut self, given: &SubscriptionPatch, names: &[&str]) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut faults = Faults::default();
        let before = self.plan;
        let mut plan = terms::patched(&before, given, UpdateMask::Only(&names), &At::ROOT, &mut faults);
        if !faults.is_empty() || before.status == Status::Ended || plan == before {
            return;
        }
        plan.changed(&before, self.today);
        self.plan = plan;
        let day = if plan.term.is_of_weeks() { plan.day_of_week } else { plan.day_of_month };
        let agreed = Agreed { term: plan.term, start: plan.start, end: plan.end, first: plan.first, day };
        self.model.change(agreed, self.today);
        self.told = plan.unbilled_days();
    }

    fn deactivate(&mut self, days: Option<i64>) {
        if self.plan.status == Status::Ended {
            return;
        }
        let end = days.map(|days| self.at(days));
        let end = end.unwrap_or_else(|| self.plan.last.map_or(self.today, |last| last.max(self.today)));
        let mut plan = self.plan;
        plan.end_on(end, self.today);
        let mut faults = Faults::default();
        terms::check_end(&plan, &At::ROOT, &mut faults);
        if faults.is_empty() {
            self.plan = plan;
            self.model.change(Agreed { end: Some(end), ..self.model.agreed }, self.today);
            self.model.ended = true;
            self.told = plan.unbilled_days();
        }
    }

    fn run(&mut self) {
        let known = self.model.invoices.len();
        let mut until = self.model.invoices.last().map(|(_, to)| *to);
        let mut made = Vec::new();
        loop {
            match self.plan.turn(self.today) {
                Turn::Bill(period) => {
                    let gap = until.map_or(0, |until| (period.from - until).num_days() - 1);
                    assert_eq!(gap, self.told, "the gap before {period:?} is what was said");
                    for date in period.from.iter_days().take_while(|date| *date <= period.to) {
                        assert!(self.billed.insert(date), "{date} is billed twice");
                    }
                    (until, self.told) = (Some(period.to), 0);
                    made.push((period.from, period.to));
                    self.plan.billed();
                }
                Turn::End => self.plan.status = Status::Ended,
                Turn::Nothing => break,
            }
        }
        self.model.run(self.today);
        assert_eq!(made, self.model.invoices[known..], "the invoices are those of the calendar");
    }

    fn check(&self) {
        assert_eq!(self.plan.next, self.model.next());
        assert_eq!(self.plan.unbilled_days(), self.model.unbilled_days());
        assert_eq!(self.plan.status == Status::Ended, self.model.ended);
    }
}

prop_compose! {
    fn agreed()(
        term in 0..6_usize,
        // Around the leap day of 2024 and the short months after it.
        start in 0..900_i64,
        day in proptest::option::of(1..32_u32),
        first in proptest::option::weighted(0.3, 0..100_i64),
        length in proptest::option::weighted(0.3, 100..900_i64),
        starts in proptest::bool::weighted(0.85),
        waited in -100..100_i64,
    ) -> (Agreed, NaiveDate, bool) {
        let start = NaiveDate::from_ymd_opt(2023, 6, 1).unwrap() + TimeDelta::days(start);
        let term = Term::ALL[term];
        let agreed = Agreed {
            term,
            start: Some(start),
            end: length.map(|days| start + TimeDelta::days(days)),
            first: first.map(|days| start + TimeDelta::days(days)),
            day: day.map(|day| if term.is_of_weeks() { (day - 1) % 7 + 1 } else { day }),
        };
        (agreed, start + TimeDelta::days(waited), starts)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_day_is_billed_twice_and_each_gap_is_told_whatever_is_changed_when(
        (agreed, today, starts) in agreed(),
        steps in proptest::collection::vec(step(), 1..25),
    ) {
        let mut life = Life::new(agreed, today, starts);
        life.check();
        for step in &steps {
            life.take(step);
            life.check();
        }
        life.take(&Step::Days(400, true));
        life.check();
    }
}
