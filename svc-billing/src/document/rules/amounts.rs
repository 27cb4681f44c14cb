//! The arithmetic of documents: exact decimals, amounts rounded to cents with halves away from zero, VAT for each rate
//! over the sum of its rows and rounded once, as EN 16931 requires.
//!
//! A document that was made from its totals alone has one row, and the VAT that was sent. With 10.00 including 21 % that
//! is 1.74 over 8.26, a cent more than 21 % of 8.26. So the VAT of a document is stored with it, and [`vat_lines`] uses
//! the stored amount.

use render::printed::Category;
use rust_decimal::{Decimal, RoundingStrategy};

pub(crate) use crate::money::two_places;

/// The absolute value of an amount is below this: 1,000,000,000,000.
pub(crate) const LIMIT: Decimal = Decimal::from_parts(3_567_587_328, 232, 0, false, 0);

/// A row of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub name: String,
    pub description: String,
    pub quantity: Decimal,
    pub unit: String,
    pub unit_price: Decimal,
    /// In percent.
    pub vat_rate: Decimal,
    /// The code of the tax rate; empty for a rate that the account does not have.
    pub vat_code: String,
    pub category: Category,
}

impl Row {
    pub(crate) fn total_excl(&self) -> Decimal {
        // Beyond the limit the product may be inexact. Such rows are refused, see `fits`.
        cents(self.quantity.saturating_mul(self.unit_price))
    }

    /// With its VAT, rounded for this row alone.
    pub(crate) fn total_incl(&self) -> Decimal {
        let excl = self.total_excl();
        excl + vat_of(excl, self.vat_rate)
    }

    /// Whether its amounts are below the limit.
    pub(crate) fn fits(&self) -> bool {
        self.total_excl().abs() < LIMIT && self.total_incl().abs() < LIMIT
    }
}

/// The rows of one rate and category, together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VatGroup {
    pub rate: Decimal,
    pub category: Category,
    /// The code of the first row that has one.
    pub code: String,
    pub taxable: Decimal,
    pub vat: Decimal,
}

/// The totals of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Amounts {
    pub excl: Decimal,
    pub vat: Decimal,
    pub incl: Decimal,
    /// The common rate, or the VAT in percent of `excl` when rows have several rates.
    pub rate: Decimal,
}

/// The rows of a document and their totals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub rows: Vec<Row>,
    pub amounts: Amounts,
}

impl Amounts {
    /// Whether they are below the limit.
    pub(crate) fn fit(&self) -> bool {
        self.excl.abs() < LIMIT && self.incl.abs() < LIMIT
    }
}

/// The VAT of the rows: a group for each rate and category, the highest rate first.
pub(crate) fn vat_groups(rows: &[Row]) -> Vec<VatGroup> {
    let mut groups: Vec<VatGroup> = Vec::new();
    for row in rows {
        let same = |group: &&mut VatGroup| group.rate == row.vat_rate && group.category == row.category;
        match groups.iter_mut().find(same) {
            Some(group) => {
                group.taxable += row.total_excl();
                if group.code.is_empty() {
                    group.code.clone_from(&row.vat_code);
                }
            }
            None => groups.push(VatGroup {
                rate: row.vat_rate,
                category: row.category,
                code: row.vat_code.clone(),
                taxable: row.total_excl(),
                vat: Decimal::ZERO,
            }),
        }
    }
    for group in &mut groups {
        group.vat = vat_of(group.taxable, group.rate);
    }
    groups.sort_by(|one, other| other.rate.cmp(&one.rate).then(one.category.cmp(&other.category)));
    groups
}

/// The VAT of a document as it is shown: computed from its rows, or the stored VAT where all rows have one rate.
pub(crate) fn vat_lines(rows: &[Row], vat: Decimal) -> Vec<VatGroup> {
    let mut groups = vat_groups(rows);
    if let [only] = groups.as_mut_slice() {
        only.vat = vat;
    }
    groups
}

pub(crate) fn amounts(groups: &[VatGroup]) -> Amounts {
    let excl: Decimal = groups.iter().map(|group| group.taxable).sum();
    let vat: Decimal = groups.iter().map(|group| group.vat).sum();
    let rate = match groups {
        [] => Decimal::ZERO,
        [first, others @ ..] if others.iter().all(|group| group.rate == first.rate) => first.rate,
        _ => blended(vat, excl),
    };
    Amounts { excl: two_places(excl), vat: two_places(vat), incl: two_places(excl + vat), rate }
}

fn blended(vat: Decimal, excl: Decimal) -> Decimal {
    share(vat, excl).unwrap_or_default()
}

/// VAT in percent of an amount; `None` for an amount of zero.
pub(crate) fn share(vat: Decimal, excl: Decimal) -> Option<Decimal> {
    let percent = vat.checked_mul(Decimal::ONE_HUNDRED)?.checked_div(excl)?;
    Some(cents(percent).normalize())
}

/// An amount including VAT without that VAT, rounded to cents.
pub(crate) fn without_vat(incl: Decimal, rate: Decimal) -> Decimal {
    let whole = Decimal::ONE_HUNDRED + rate;
    cents(incl.saturating_mul(Decimal::ONE_HUNDRED).checked_div(whole).unwrap_or_default())
}

/// The VAT on an amount, rounded to cents.
pub(crate) fn vat_of(taxable: Decimal, rate: Decimal) -> Decimal {
    cents(taxable.saturating_mul(rate) / Decimal::ONE_HUNDRED)
}

/// Rounded to cents, halves away from zero.
pub(crate) fn cents(amount: Decimal) -> Decimal {
    amount.round_dp_with_strategy(2, RoundingStrategy::MidpointAwayFromZero)
}

/// A number of a request, which has been checked to be one; `None` when it is absent (or was reported as a fault).
pub(crate) fn number(text: &str) -> Option<Decimal> {
    text.parse().ok()
}

#[cfg(test)]
#[path = "amounts_tests.rs"]
mod tests;
