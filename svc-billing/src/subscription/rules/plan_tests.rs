//! Single cases by hand, and whole schedules against a model that walks the calendar day by day.

use chrono::{Datelike, Weekday};
use proptest::prelude::*;

use super::*;

fn day(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn plan(term: Term, start: &str) -> Plan {
    Plan {
        term,
        start: Some(day(start)),
        end: None,
        first: None,
        day_of_month: None,
        day_of_week: None,
        status: Status::Draft,
        series: None,
        last: None,
        billed_until: None,
        next: None,
    }
}

fn active(mut plan: Plan, today: &str) -> Plan {
    plan.activate(day(today));
    plan
}

/// The dates that get an invoice until a day, when a run looks at each of these days.
fn run(plan: &mut Plan, days: impl IntoIterator<Item = NaiveDate>) -> Vec<Period> {
    let mut made = Vec::new();
    for today in days {
        loop {
            match plan.turn(today) {
                Turn::Bill(period) => {
                    made.push(period);
                    plan.billed();
                }
                Turn::End => plan.status = Status::Ended,
                Turn::Nothing => break,
            }
        }
    }
    made
}

fn dates_until(plan: &mut Plan, last: &str) -> Vec<String> {
    run(plan, [day(last)]).iter().map(|period| period.from.to_string()).collect()
}

#[test]
fn a_start_years_ago_keeps_its_day_and_bills_nothing_for_the_past() {
    let mut plan = active(plan(Term::Quarterly, "2020-01-31"), "2026-11-15");
    assert_eq!(plan.next, Some(day("2027-01-31")));
    assert_eq!(dates_until(&mut plan, "2027-08-01"), ["2027-01-31", "2027-04-30", "2027-07-31"]);
}

#[test]
fn a_date_of_today_is_billed_today() {
    let plan = active(plan(Term::Monthly, "2026-10-15"), "2026-11-15");
    assert_eq!(plan.next, Some(day("2026-11-15")));
}

#[test]
fn a_day_of_the_month_before_the_start_begins_with_the_next_month() {
    let asked = Plan { day_of_month: Some(1), ..plan(Term::Quarterly, "2026-11-15") };
    let mut plan = active(asked, "2026-11-15");
    assert_eq!(dates_until(&mut plan, "2027-06-30"), ["2026-12-01", "2027-03-01", "2027-06-01"]);
}

#[test]
fn a_first_date_in_the_past_is_billed_with_all_that_followed() {
    let asked = Plan { first: Some(day("2026-02-28")), ..plan(Term::Monthly, "2026-01-31") };
    let mut plan = active(asked, "2026-05-31");
    let expected = ["2026-02-28", "2026-03-31", "2026-04-30", "2026-05-31"];
    assert_eq!(dates_until(&mut plan, "2026-05-31"), expected);
}

#[test]
fn a_first_date_beside_the_schedule_is_followed_at_whole_terms() {
    let asked = Plan { first: Some(day("2026-01-15")), ..plan(Term::Monthly, "2026-01-01") };
    let mut plain = active(asked, "2026-01-01");
    assert_eq!(dates_until(&mut plain, "2026-03-31"), ["2026-01-15", "2026-02-15", "2026-03-15"]);
    let mut on_first = active(Plan { day_of_month: Some(1), ..asked }, "2026-01-01");
    assert_eq!(dates_until(&mut on_first, "2026-03-31"), ["2026-01-15", "2026-02-01", "2026-03-01"]);
    let weekly = Plan { term: Term::Weekly, day_of_week: Some(1), ..asked };
    let mut on_monday = active(weekly, "2026-01-01");
    assert_eq!(dates_until(&mut on_monday, "2026-01-31"), ["2026-01-15", "2026-01-19", "2026-01-26"]);
}

#[test]
fn the_last_day_is_part_of_the_subscription() {
    let asked = Plan { end: Some(day("2026-03-31")), ..plan(Term::Monthly, "2026-01-31") };
    let mut plan = active(asked, "2026-01-31");
    assert_eq!(dates_until(&mut plan, "2026-03-31"), ["2026-01-31", "2026-02-28", "2026-03-31"]);
    assert_eq!((plan.status, plan.next, plan.due_on()), (Status::Active, None, Some(day("2026-04-01"))));
    assert_eq!(plan.turn(day("2026-04-01")), Turn::End);
}

#[test]
fn the_period_of_the_last_invoice_ends_with_the_subscription() {
    let asked = Plan { end: Some(day("2026-02-10")), ..plan(Term::Monthly, "2026-01-31") };
    let mut plan = active(asked, "2026-01-31");
    let periods = run(&mut plan, [day("2026-12-31")]);
    assert_eq!(periods, [Period { from: day("2026-01-31"), to: day("2026-02-10") }]);
}

#[test]
fn an_ended_plan_still_bills_up_to_its_end_and_then_rests() {
    let mut plan = active(plan(Term::Monthly, "2026-01-31"), "2026-01-31");
    plan.end_on(day("2026-03-31"), day("2026-01-31"));
    assert_eq!((plan.status, plan.due_on()), (Status::Ended, Some(day("2026-01-31"))));
    assert_eq!(dates_until(&mut plan, "2026-12-31").len(), 3);
    assert_eq!((plan.due_on(), plan.turn(day("2027-01-01"))), (None, Turn::Nothing));
}

#[test]
fn a_draft_that_ends_never_bills() {
    let mut plan = plan(Term::Monthly, "2026-01-31");
    plan.end_on(day("2026-12-31"), day("2026-01-01"));
    assert_eq!((plan.due_on(), plan.turn(day("2026-06-30"))), (None, Turn::Nothing));
}

#[test]
fn a_draft_without_a_start_starts_when_it_is_activated() {
    let bare = Plan { start: None, ..plan(Term::Monthly, "2026-01-01") };
    assert_eq!(active(bare, "2026-05-31").start, Some(day("2026-05-31")));
    let early = active(Plan { first: Some(day("2026-04-30")), ..bare }, "2026-05-31");
    assert_eq!((early.start, early.next), (Some(day("2026-04-30")), Some(day("2026-04-30"))));
    let late = active(Plan { first: Some(day("2026-06-30")), ..bare }, "2026-05-31");
    assert_eq!((late.start, late.next), (Some(day("2026-05-31")), Some(day("2026-06-30"))));
}

/// A monthly plan of the first that was billed until November, and then changed.
fn changed(change: impl Fn(&mut Plan)) -> Vec<String> {
    let mut plan = active(Plan { day_of_month: Some(1), ..plan(Term::Monthly, "2026-10-01") }, "2026-10-01");
    assert_eq!(dates_until(&mut plan, "2026-11-15"), ["2026-10-01", "2026-11-01"]);
    let before = plan;
    change(&mut plan);
    plan.changed(&before, day("2026-11-15"));
    dates_until(&mut plan, "2027-03-31").into_iter().take(3).collect()
}

#[test]
fn a_change_counts_from_the_first_period_without_an_invoice() {
    assert_eq!(changed(|plan| plan.day_of_month = Some(20)), ["2026-12-20", "2027-01-20", "2027-02-20"]);
    assert_eq!(changed(|plan| plan.day_of_month = Some(31)), ["2026-12-31", "2027-01-31", "2027-02-28"]);
    assert_eq!(changed(|plan| plan.term = Term::Quarterly), ["2026-12-01", "2027-03-01"]);
    let weekly = |plan: &mut Plan| (plan.term, plan.day_of_month) = (Term::Weekly, None);
    assert_eq!(changed(weekly), ["2026-12-03", "2026-12-10", "2026-12-17"], "1 October was a Thursday");
    assert_eq!(changed(|plan| plan.start = Some(day("2027-02-15"))), ["2027-03-01"]);
    assert_eq!(changed(|plan| plan.end = Some(day("2026-12-01"))), ["2026-12-01"]);
    assert_eq!(changed(|_| ()), ["2026-12-01", "2027-01-01", "2027-02-01"]);
}

#[test]
fn a_later_end_brings_the_dates_back() {
    let asked = Plan { end: Some(day("2026-11-20")), ..plan(Term::Monthly, "2026-11-25") };
    let mut plan = active(asked, "2026-11-15");
    assert_eq!(plan.next, None);
    let before = plan;
    plan.end = Some(day("2026-12-31"));
    plan.changed(&before, day("2026-11-16"));
    assert_eq!(dates_until(&mut plan, "2027-12-31"), ["2026-11-25", "2026-12-25"]);
}

#[test]
fn a_change_does_not_lose_a_date_that_a_late_run_has_not_billed_yet() {
    let mut plan = active(plan(Term::Monthly, "2026-11-10"), "2026-11-01");
    let before = plan;
    plan.end = Some(day("2027-12-31"));
    plan.changed(&before, day("2026-11-15"));
    assert_eq!(plan.next, Some(day("2026-11-10")));
}

/// The same dates in the plainest way: each day of the calendar is looked at.
fn model(asked: &Plan, floor: NaiveDate, until: NaiveDate) -> Vec<NaiveDate> {
    let start = asked.start.unwrap();
    let (weeks, months) = match asked.term {
        Term::Weekly => (1, 0),
        Term::FourWeeks => (4, 0),
        Term::Monthly => (0, 1),
        Term::Quarterly => (0, 3),
        Term::HalfYearly => (0, 6),
        Term::Yearly => (0, 12),
    };
    let iso =
        [Weekday::Mon, Weekday::Tue, Weekday::Wed, Weekday::Thu, Weekday::Fri, Weekday::Sat, Weekday::Sun];
    let weekday = asked.day_of_week.map_or(start.weekday(), |number| iso[number as usize - 1]);
    let wanted = asked.day_of_month.unwrap_or(start.day());
    let (mut found, mut days, mut turned) = (Vec::new(), 0, 0);
    let mut began = false;
    for date in start.iter_days().take_while(|date| *date <= until) {
        let is_last = date.succ_opt().unwrap().month() != date.month();
        if began {
            days += 1;
            turned += u32::from(date.day() == 1);
        }
        let is_day = if weeks > 0 {
            date.weekday() == weekday
        } else {
            date.day() == wanted || (is_last && date.day() < wanted)
        };
        began |= is_day;
        let is_turn = if weeks > 0 { days % (7 * weeks) == 0 } else { turned % months == 0 };
        if is_day && is_turn && date >= floor {
            found.push(date);
        }
    }
    found
}

prop_compose! {
    /// A plan, the day it is activated on, and the days on which a run looks at it.
    fn schedule()(
        term in 0..6_usize,
        start in 0..1_500_i32,
        asked_day in proptest::option::of(1..32_u32),
        waited in -400..400_i32,
        length in proptest::option::of(0..1_200_u64),
        gaps in proptest::collection::vec(1..150_u64, 0..30),
    ) -> (Plan, NaiveDate, Vec<NaiveDate>) {
        let first = NaiveDate::from_ymd_opt(2022, 12, 1).unwrap().num_days_from_ce();
        let at = |days: i32| NaiveDate::from_num_days_from_ce_opt(first + days).unwrap();
        let term = Term::ALL[term];
        let start_day = at(start);
        let plan = Plan {
            term,
            start: Some(start_day),
            end: length.map(|days| start_day + Days::new(days)),
            day_of_month: asked_day.filter(|_| !term.is_of_weeks()),
            day_of_week: asked_day.filter(|_| term.is_of_weeks()).map(|day| (day - 1) % 7 + 1),
            ..plan(term, "2026-01-01")
        };
        let today = at(start + waited);
        let mut runs = vec![today];
        for gap in gaps {
            runs.push(*runs.last().unwrap() + Days::new(gap));
        }
        (plan, today, runs)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn thirty_six_months_of_any_schedule_are_those_of_the_calendar_however_late_the_runs((asked, today, mut runs) in schedule()) {
        let start = asked.start.unwrap();
        let until = today.max(start) + chrono::Months::new(36);
        runs.retain(|day| *day < until);
        runs.push(until);
        let mut plan = asked;
        plan.activate(today);
        let made = run(&mut plan, runs);

        let mut expected = model(&asked, today, until);
        expected.retain(|date| asked.end.is_none_or(|end| *date <= end));
        prop_assert_eq!(made.iter().map(|period| period.from).collect::<Vec<_>>(), expected);
        for pair in made.windows(2) {
            prop_assert_eq!(pair[0].to.succ_opt(), Some(pair[1].from), "periods leave no day out");
        }
        let ended = asked.end.is_some_and(|end| end < until);
        prop_assert_eq!(plan.status == Status::Ended, ended);
        prop_assert!(plan.next.is_none_or(|next| next > until));
    }
}
