use super::*;

fn day(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn dates(term: Term, anchor: &str, day_of: u32, count: i64) -> Vec<String> {
    let series = Series { term, anchor: day(anchor), day: day_of };
    (0..count).map(|k| series.date(k).unwrap().to_string()).collect()
}

#[test]
fn a_short_month_has_its_last_day_and_the_next_one_the_anchors_again() {
    assert_eq!(
        dates(Term::Monthly, "2026-01-31", 31, 4),
        ["2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30"]
    );
    assert_eq!(dates(Term::Monthly, "2024-01-30", 30, 3), ["2024-01-30", "2024-02-29", "2024-03-30"]);
    assert_eq!(dates(Term::Quarterly, "2025-11-30", 30, 3), ["2025-11-30", "2026-02-28", "2026-05-30"]);
    assert_eq!(dates(Term::HalfYearly, "2025-08-31", 31, 3), ["2025-08-31", "2026-02-28", "2026-08-31"]);
}

#[test]
fn a_leap_day_comes_back_every_fourth_year() {
    let expected = ["2024-02-29", "2025-02-28", "2026-02-28", "2027-02-28", "2028-02-29"];
    assert_eq!(dates(Term::Yearly, "2024-02-29", 29, 5), expected);
}

#[test]
fn weeks_keep_their_weekday_across_years() {
    assert_eq!(dates(Term::Weekly, "2026-12-28", 1, 3), ["2026-12-28", "2027-01-04", "2027-01-11"]);
    assert_eq!(dates(Term::FourWeeks, "2026-12-20", 7, 3), ["2026-12-20", "2027-01-17", "2027-02-14"]);
}

#[test]
fn the_days_of_a_week_are_those_of_iso() {
    let monday = day("2026-11-09");
    for (number, date) in (1..=7).zip(monday.iter_days()) {
        assert_eq!(Term::Weekly.day_of(date), number);
        assert_eq!(Term::Weekly.first_on_or_after(monday, number), Some(date));
    }
}

#[test]
fn dates_end_with_the_year_9999() {
    let series = Series { term: Term::Monthly, anchor: day("9999-11-30"), day: 30 };
    assert_eq!(series.date(1), Some(day("9999-12-30")));
    assert_eq!((series.date(2), series.after(day("9999-12-30"))), (None, None));
    assert_eq!(series.on_or_after(day("9999-12-31")), None);
    assert_eq!(series.period_end(day("9999-12-30")), LAST_DAY);
    let weekly = Series { term: Term::Weekly, anchor: LAST_DAY, day: 5 };
    assert_eq!((weekly.date(0), weekly.date(1)), (Some(LAST_DAY), None));
    assert_eq!(weekly.date(i64::MAX), None);
}

#[test]
fn a_date_between_two_belongs_to_the_earlier_term() {
    let series = Series { term: Term::Quarterly, anchor: day("2026-01-15"), day: 15 };
    assert_eq!(series.after(day("2026-01-15")), Some(day("2026-04-15")));
    assert_eq!(series.after(day("2026-01-31")), Some(day("2026-04-15")));
    assert_eq!(series.on_or_after(day("2026-01-16")), Some(day("2026-04-15")));
    assert_eq!(series.period_end(day("2026-01-15")), day("2026-04-14"));
    assert!(series.contains(day("2025-10-15")) && !series.contains(day("2026-02-15")));
}
