//! Which VAT rate a row or a total has: by its code, by its percentage, or the account's default.

use render::printed::Category;
use rust_decimal::Decimal;

use crate::settings::SalesRate;

/// The VAT rate of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VatRate {
    pub percent: Decimal,
    /// The code of the tax rate; empty for a rate that the account does not have.
    pub code: String,
    pub category: Category,
}

impl From<&SalesRate> for VatRate {
    fn from(rate: &SalesRate) -> Self {
        Self { percent: rate.amount.normalize(), code: rate.code.clone(), category: rate.category }
    }
}

impl VatRate {
    /// The account's default rate; zero for an account without one.
    pub(crate) fn default_of(rates: &[SalesRate]) -> Self {
        let default = rates.iter().find(|rate| rate.is_default);
        default.map_or_else(|| Self::without_code(Decimal::ZERO), Self::from)
    }

    /// The account's rate with this percentage, if it has one. 0 percent means zero-rated.
    pub(crate) fn of_percent(percent: Decimal, rates: &[SalesRate]) -> Self {
        let plain = Self::without_code(percent);
        let known = rates.iter().find(|rate| rate.amount == percent && rate.category == plain.category);
        known.map_or(plain, Self::from)
    }

    fn without_code(percent: Decimal) -> Self {
        let category = if percent.is_zero() { Category::Z } else { Category::S };
        Self { percent: percent.normalize(), code: String::new(), category }
    }
}
