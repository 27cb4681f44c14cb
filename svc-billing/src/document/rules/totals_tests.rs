//! Totals by chance, checked in whole cents and ten-thousandths of a percent.

use proptest::prelude::*;

use super::super::amounts::{vat_groups, vat_lines};
use super::super::input;
use super::*;

fn rates() -> Vec<SalesRate> {
    let rate = |code: &str, amount: i64, category, is_default| SalesRate {
        code: code.to_owned(),
        amount: amount.into(),
        category,
        is_default,
    };
    vec![
        rate("HIGH", 21, Category::S, true),
        rate("LOW", 9, Category::S, false),
        rate("ZERO", 0, Category::Z, false),
        rate("REVERSE", 0, Category::AE, false),
    ]
}

/// Which totals are sent, in cents, and the percentage.
#[derive(Clone, Debug)]
struct Sent {
    excl: Option<i64>,
    vat: Option<i64>,
    incl: Option<i64>,
    rate: Option<i64>,
}

/// Totals that belong together: VAT at some rate, or a cent beside it, or any.
fn sent() -> impl Strategy<Value = Sent> {
    let cents = prop_oneof![3 => 1..5_000_i64, 2 => 1..10_000_000_i64, 1 => -100_000..0_i64];
    let percent = prop_oneof![3 => Just(21_i64), 2 => Just(9), 1 => Just(0), 1 => 0..=100_i64];
    let off = prop_oneof![6 => Just(0_i64), 2 => -1..=1_i64, 1 => 0..100_i64];
    let shown = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (cents, percent, off, shown).prop_map(|(excl, percent, off, shown)| {
        let vat = excl * percent / 100 + off * excl.signum();
        Sent {
            excl: shown.0.then_some(excl),
            vat: shown.1.then_some(vat),
            incl: (shown.2 || !shown.0).then_some(excl + vat),
            rate: shown.3.then_some(percent),
        }
    })
}

fn text(cents: Option<i64>) -> String {
    cents.map(|cents| Decimal::new(cents, 2).to_string()).unwrap_or_default()
}

/// Cents of an amount of cents.
fn cents_of(amount: Decimal) -> i64 {
    assert_eq!(amount.scale(), 2, "{amount}");
    i64::try_from(amount.mantissa()).unwrap()
}

/// Whether a rate makes these cents of each other, from below or from above.
fn explains(excl: i64, vat: i64, rate: Decimal) -> bool {
    let rate = (rate * Decimal::from(10_000)).trunc().mantissa();
    let (excl, vat) = (i128::from(excl), i128::from(vat));
    // Twice the distance from the exact VAT in millionths of a cent; half a cent is one of these units.
    let off = |exact: i128, whole: i128, shown: i128| 2 * (exact - shown * whole).abs() <= whole;
    off(excl * rate, 1_000_000, vat) || off((excl + vat) * 1_000_000, 1_000_000 + rate, excl)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_document_made_from_totals_comes_to_what_was_sent(sent in sent()) {
        let given = DocumentInput {
            title: "Bread".to_owned(),
            total_excl_vat: text(sent.excl),
            vat_amount: text(sent.vat),
            total_incl_vat: text(sent.incl),
            vat_rate: sent.rate.map(|rate| rate.to_string()).unwrap_or_default(),
            ..DocumentInput::default()
        };
        let mut faults = Faults::default();
        let Content { rows, amounts } = input::content(&given, &rates(), &At::ROOT, &mut faults);
        if !faults.is_empty() {
            // Only a rate that is not theirs, or a share that is no rate, can be wrong with totals that belong together.
            let known = [sent.excl, sent.vat, sent.incl].iter().flatten().count() > 1;
            prop_assert!(known, "{:?}", faults.entries());
            return Ok(());
        }
        let [row] = rows.as_slice() else { return Err(TestCaseError::fail("one row")) };
        let (excl, vat, incl) = (cents_of(amounts.excl), cents_of(amounts.vat), cents_of(amounts.incl));
        prop_assert_eq!(excl + vat, incl);
        for (sent, made) in [(sent.excl, excl), (sent.vat, vat), (sent.incl, incl)] {
            prop_assert!(sent.is_none_or(|sent| sent == made), "{:?}", amounts);
        }
        let blended = share(amounts.vat, amounts.excl);
        prop_assert!(explains(excl, vat, row.vat_rate) || blended == Some(row.vat_rate), "{:?} {:?}", row, amounts);
        prop_assert!(sent.rate.is_none_or(|rate| row.vat_rate == rate.into()));
        // The document shows the same, and so does what takes it back.
        let lines = vat_lines(&rows, amounts.vat);
        prop_assert_eq!(lines.iter().map(|line| line.vat).sum::<Decimal>(), amounts.vat);
        prop_assert_eq!(lines[0].taxable, amounts.excl);
        let back = [Row { quantity: -row.quantity, ..row.clone() }];
        prop_assert_eq!(vat_groups(&back)[0].taxable, -amounts.excl);
    }

    #[test]
    fn a_total_alone_is_taken_at_any_rate(cents in -10_000_000..10_000_000_i64, rate in 0..=10_000_i64) {
        let given = DocumentInput {
            total_incl_vat: Decimal::new(cents, 2).to_string(),
            vat_rate: Decimal::new(rate, 2).to_string(),
            ..DocumentInput::default()
        };
        let mut faults = Faults::default();
        let Content { amounts, .. } = input::content(&given, &rates(), &At::ROOT, &mut faults);
        prop_assert!(faults.is_empty(), "{:?}", faults.entries());
        prop_assert_eq!(cents_of(amounts.incl), cents);
        prop_assert_eq!(amounts.excl + amounts.vat, amounts.incl);
    }
}
