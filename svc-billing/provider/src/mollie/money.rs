//! Amounts in Mollie's form: `{"currency": "EUR", "value": "10.00"}`, with exactly the currency's number of decimals.

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct Money {
    pub currency: String,
    pub value: String,
}

impl Money {
    /// `None` when the amount is negative or has more decimals than the currency: an amount is never rounded before it is
    /// sent.
    pub(crate) fn new(amount: Decimal, currency: &str) -> Option<Self> {
        let mut exact = amount.normalize();
        if exact.is_sign_negative() && !exact.is_zero() {
            return None;
        }
        let decimals = decimals(currency);
        if exact.scale() > decimals {
            return None;
        }
        exact.rescale(decimals);
        // Rescaling stops early if the digits do not fit.
        (exact.scale() == decimals)
            .then(|| Self { currency: currency.to_owned(), value: exact.abs().to_string() })
    }

    /// `None` when the value is not a plain decimal number.
    pub(crate) fn amount(&self) -> Option<Decimal> {
        let plain = |character: char| character.is_ascii_digit() || matches!(character, '.' | '-');
        if !self.value.chars().all(plain) {
            return None;
        }
        Decimal::from_str_exact(&self.value).ok()
    }
}

/// As in Mollie's list of currencies, where the forint and the New Taiwan dollar have two.
pub(super) fn decimals(currency: &str) -> u32 {
    match currency {
        "ISK" | "JPY" => 0,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(amount: Decimal, currency: &str) -> Option<String> {
        Money::new(amount, currency).map(|money| money.value)
    }

    #[test]
    fn an_amount_has_the_decimals_of_its_currency() {
        assert_eq!(value(Decimal::new(10, 0), "EUR").as_deref(), Some("10.00"));
        assert_eq!(value(Decimal::new(1, 2), "EUR").as_deref(), Some("0.01"));
        assert_eq!(value(Decimal::new(1_000_000, 5), "EUR").as_deref(), Some("10.00"));
        assert_eq!(value(Decimal::new(5000, 1), "JPY").as_deref(), Some("500"));
        assert_eq!(value(-Decimal::ZERO, "EUR").as_deref(), Some("0.00"));
    }

    #[test]
    fn an_amount_that_cannot_be_said_exactly_is_not_said() {
        assert_eq!(value(Decimal::new(10_001, 3), "EUR"), None);
        assert_eq!(value(Decimal::new(5, 1), "JPY"), None);
        assert_eq!(value(Decimal::new(-1, 2), "EUR"), None);
        assert_eq!(value(Decimal::MAX, "EUR"), None);
    }

    #[test]
    fn what_is_not_a_number_is_no_amount() {
        for nonsense in ["", "1,00", "1e3", "1_000", "NaN", "--1", "1.0.0", "+1", " 1", "ten"] {
            let money = Money { currency: "EUR".to_owned(), value: nonsense.to_owned() };
            assert_eq!(money.amount(), None, "{nonsense}");
        }
    }

    proptest! {
        #[test]
        fn an_amount_survives_the_way_to_mollie_and_back(
            minor in 0..=i64::MAX,
            currency in prop::sample::select(vec!["EUR", "USD", "JPY", "ISK", "HUF"]),
            zeros in 0_u32..4,
        ) {
            let mut amount = Decimal::new(minor, decimals(currency));
            amount.rescale(decimals(currency) + zeros);
            let money = Money::new(amount, currency).expect("as fine as the currency");
            prop_assert_eq!(money.amount(), Some(amount));
            let fraction = money.value.split_once('.').map_or(0, |(_, fraction)| fraction.len());
            prop_assert_eq!(fraction, decimals(currency) as usize);
        }

        #[test]
        fn no_text_makes_reading_an_amount_panic(value in ".{0,40}") {
            let _ = Money { currency: "EUR".to_owned(), value }.amount();
        }
    }
}
