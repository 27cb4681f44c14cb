//! Checked against a second implementation of the arithmetic: whole numbers only, no decimal type.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::*;

/// A row in ten-thousandths: quantity, price, percent; and its category.
type Plain = (i64, i64, i64, Category);

/// Divides and rounds halves away from zero.
fn divide(numerator: i128, denominator: i128) -> i128 {
    let half = denominator / 2;
    if numerator >= 0 { (numerator + half) / denominator } else { -((-numerator + half) / denominator) }
}

/// Cents of a row: (q/10^4)·(p/10^4) in units of 10^-8, to 10^-2.
fn plain_excl((quantity, price, ..): &Plain) -> i128 {
    divide(i128::from(*quantity) * i128::from(*price), 1_000_000)
}

fn plain_vat(cents: i128, rate: i64) -> i128 {
    divide(cents * i128::from(rate), 1_000_000)
}

fn plain_totals(rows: &[Plain]) -> (i128, i128) {
    let mut sums = std::collections::BTreeMap::<(i64, Category), i128>::new();
    for row in rows {
        *sums.entry((row.2, row.3)).or_default() += plain_excl(row);
    }
    (sums.values().sum(), sums.iter().map(|((rate, _), taxable)| plain_vat(*taxable, *rate)).sum())
}

fn row(&(quantity, price, rate, category): &Plain) -> Row {
    Row {
        name: "x".into(),
        description: String::new(),
        quantity: Decimal::new(quantity, 4),
        unit: String::new(),
        unit_price: Decimal::new(price, 4),
        vat_rate: Decimal::new(rate, 4),
        vat_code: String::new(),
        category,
    }
}

fn in_cents(amount: Decimal) -> i128 {
    let hundredfold = amount * Decimal::ONE_HUNDRED;
    assert_eq!(hundredfold.fract(), Decimal::ZERO, "{amount} is no whole number of cents");
    hundredfold.trunc().mantissa() / 10_i128.pow(hundredfold.trunc().scale())
}

fn rates() -> impl Strategy<Value = (i64, Category)> {
    prop_oneof![
        4 => Just((210_000, Category::S)),
        3 => Just((90_000, Category::S)),
        1 => Just((0, Category::Z)),
        1 => Just((0, Category::AE)),
        2 => (0..=1_000_000_i64).prop_map(|rate| (rate, Category::S)),
    ]
}

fn plain_row() -> impl Strategy<Value = Plain> {
    let usual = (-100_000..1_000_000_i64, -1_000_000..10_000_000_i64);
    let many = (-9_999_999_999..9_999_999_999_i64, -99_999..99_999_i64);
    let dear = (-99_999..99_999_i64, -999_999_999_999..999_999_999_999_i64);
    // Many products that end in exactly half a cent.
    let halves = (1..2000_i64, prop_oneof![Just(50), Just(-50), Just(150), Just(12_350)]);
    let numbers =
        prop_oneof![5 => usual, 1 => many, 1 => dear, 2 => halves.prop_map(|(n, p)| (n * 10_000, p))];
    (numbers, rates()).prop_map(|((quantity, price), (rate, category))| (quantity, price, rate, category))
}

/// Whether both ways give the same cents for the rows.
fn check(plain: &[Plain]) -> Result<(), TestCaseError> {
    let rows: Vec<Row> = plain.iter().map(row).collect();
    for (row, plain) in rows.iter().zip(plain) {
        let excl = plain_excl(plain);
        prop_assert!(row.fits());
        prop_assert_eq!(in_cents(row.total_excl()), excl);
        prop_assert_eq!(in_cents(row.total_incl()), excl + plain_vat(excl, plain.2));
    }
    let (excl, vat) = plain_totals(plain);
    let total = amounts(&vat_groups(&rows));
    prop_assert_eq!(in_cents(total.excl), excl);
    prop_assert_eq!(in_cents(total.vat), vat);
    prop_assert_eq!(in_cents(total.incl), excl + vat);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_come_to_the_same_cents_as_in_whole_numbers(plain in proptest::collection::vec(plain_row(), 0..17)) {
        check(&plain)?;
    }
}

/// Without the means to shrink a failure, and so much faster.
#[test]
fn a_million_random_rows_come_to_the_same_cents_as_in_whole_numbers() {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut below = |limit: i64| {
        // xorshift
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        i64::try_from(state >> 1).unwrap() % limit
    };
    let rates = [(210_000, Category::S), (90_000, Category::S), (0, Category::Z), (55_000, Category::S)];
    for _ in 0..250_000 {
        let mut plain = [(0, 0, 0, Category::S); 4];
        for row in &mut plain {
            let (rate, category) = rates[usize::try_from(below(4)).unwrap()];
            *row = (below(2_000_000) - 500_000, below(40_000_000) - 10_000_000, rate, category);
        }
        check(&plain).unwrap();
    }
}

#[test]
fn vat_is_rounded_once_for_each_rate() {
    // Each row alone has 0.2331 VAT, together 0.6993.
    let rows: Vec<Row> = (0..3).map(|_| row(&(10_000, 11_100, 210_000, Category::S))).collect();
    let total = amounts(&vat_groups(&rows));
    assert_eq!((total.excl, total.vat, total.incl), (dec("3.33"), dec("0.70"), dec("4.03")));
    assert_eq!(rows.iter().map(Row::total_incl).sum::<Decimal>(), dec("4.02"));
}

#[test]
fn halves_go_away_from_zero_on_both_sides() {
    assert_eq!((cents(dec("0.005")), cents(dec("-0.005"))), (dec("0.01"), dec("-0.01")));
    assert_eq!((cents(dec("1.0049")), cents(dec("2.675"))), (dec("1.00"), dec("2.68")));
}

#[test]
fn the_rate_is_the_common_one_or_the_blend() {
    let rate = |rows: &[Plain]| amounts(&vat_groups(&rows.iter().map(row).collect::<Vec<_>>())).rate;
    let (high, low) = ((10_000, 1_000_000, 210_000, Category::S), (10_000, 1_000_000, 90_000, Category::S));
    assert_eq!(rate(&[high, high]), dec("21"));
    assert_eq!(rate(&[high, low]), dec("15"));
    assert_eq!(
        rate(&[high, (-10_000, 1_000_000, 90_000, Category::S)]),
        Decimal::ZERO,
        "nothing to divide by"
    );
    assert_eq!(rate(&[]), Decimal::ZERO);
}

#[test]
fn zero_percent_of_different_reasons_stays_apart() {
    let rows = [
        (10_000, 10_000, 0, Category::AE),
        (10_000, 20_000, 0, Category::Z),
        (10_000, 30_000, 0, Category::AE),
    ];
    let groups = vat_groups(&rows.iter().map(row).collect::<Vec<_>>());
    let shown: Vec<_> = groups.iter().map(|group| (group.category, group.taxable)).collect();
    assert_eq!(shown, [(Category::Z, dec("2.00")), (Category::AE, dec("4.00"))]);
}

#[test]
fn what_passes_the_limit_does_not_fit() {
    assert_eq!(LIMIT, dec("1000000000000"));
    let large = |quantity: &str, price: &str| Row {
        quantity: dec(quantity),
        unit_price: dec(price),
        ..row(&(0, 0, 210_000, Category::S))
    };
    assert!(large("999999999999", "0.5").fits());
    assert!(!large("999999999999", "1").fits(), "its VAT takes it over the limit");
    assert!(!large("999999999999.9999", "999999999999.9999").fits());
}

fn dec(text: &str) -> Decimal {
    text.parse().unwrap()
}
