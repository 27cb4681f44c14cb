//! Amounts of money that every part of billing needs to write alike. How amounts are computed is in
//! `document::rules::amounts`.

use rust_decimal::Decimal;

/// The amount with exactly two decimals, so that 5 is written as 5.00. Zero never has a sign.
pub(crate) fn two_places(mut amount: Decimal) -> Decimal {
    amount.rescale(2);
    if amount.is_zero() { Decimal::new(0, 2) } else { amount }
}
