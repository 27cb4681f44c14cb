//! What a create request means: its rows with their VAT, and its totals, which must agree with them.

use proto::api::Fault;
use proto::billing::{DocumentInput, DocumentRowInput};
use proto::{At, Faults};
use render::paper::Category;
use rust_decimal::Decimal;

use super::amounts::{self, Amounts, Row};
use super::totals::Totals;
use crate::settings::SalesRate;

/// The rows of a new document, and what they come to. Meaningless when there are faults.
pub fn rows(
    given: &DocumentInput,
    rates: &[SalesRate],
    at: &At<'_>,
    faults: &mut Faults,
) -> (Vec<Row>, Amounts) {
    let list = at.name("rows");
    let mut rows: Vec<Row> = Vec::with_capacity(given.rows.len());
    for (index, input) in given.rows.iter().enumerate() {
        let at = list.index(index);
        if input.name.is_empty() && input.title.is_empty() {
            let detail = "name or title is required: it is what the row shows";
            faults.add(&at.name("name"), Fault::Required, detail);
        }
        rows.push(row(input, rates, &at, faults));
    }
    let totals = Totals::of(given);
    if rows.is_empty()
        && let Some((row, amounts)) = totals.as_row(&given.title, rates, at, faults)
    {
        return (vec![row], amounts);
    }
    let amounts = total(&rows, &list, faults);
    if faults.is_empty() {
        totals.compare(&amounts, at, faults);
    }
    (rows, amounts)
}

/// What the rows come to, which has its limit.
pub fn total(rows: &[Row], list: &At<'_>, faults: &mut Faults) -> Amounts {
    let amounts = amounts::amounts(&amounts::vat_groups(rows));
    if !amounts.fit() {
        let detail = "the total of the rows must be below 1,000,000,000,000";
        faults.add(list, Fault::OutOfRange, detail);
    }
    amounts
}

/// One row with its VAT. That it has a name is not asked here.
pub fn row(input: &DocumentRowInput, rates: &[SalesRate], at: &At<'_>, faults: &mut Faults) -> Row {
    let (name, description) = match (input.name.as_str(), input.title.as_str()) {
        ("", title) => (title, ""),
        (name, title) => (name, title),
    };
    let (vat_rate, vat_code, category) = vat(input, rates, at, faults);
    let row = Row {
        name: name.to_owned(),
        description: description.to_owned(),
        quantity: number(&input.quantity).unwrap_or(Decimal::ONE).normalize(),
        unit: input.unit.clone(),
        unit_price: number(&input.unit_price).unwrap_or_default().normalize(),
        vat_rate,
        vat_code,
        category,
    };
    if !row.fits() {
        let detail = "quantity times unit_price must be below 1,000,000,000,000";
        faults.add(&at.name("unit_price"), Fault::OutOfRange, detail);
    }
    row
}

/// The code wins over the rate; without both it is the account's default.
fn vat(
    input: &DocumentRowInput,
    rates: &[SalesRate],
    at: &At<'_>,
    faults: &mut Faults,
) -> (Decimal, String, Category) {
    if !input.vat_code.is_empty() {
        if let Some(rate) = rates.iter().find(|rate| rate.code == input.vat_code) {
            return of_rate(rate);
        }
        let known: Vec<&str> = rates.iter().map(|rate| rate.code.as_str()).collect();
        let detail = format!("vat_code must be the code of a tax rate for sales: {}", known.join(", "));
        faults.add(&at.name("vat_code"), Fault::UnknownReference, detail);
    }
    number(&input.vat_rate).map_or_else(|| default_rate(rates), |percent| of_percent(percent, rates))
}

pub fn of_rate(rate: &SalesRate) -> (Decimal, String, Category) {
    (rate.amount.normalize(), rate.code.clone(), rate.category)
}

pub fn default_rate(rates: &[SalesRate]) -> (Decimal, String, Category) {
    rates.iter().find(|rate| rate.is_default).map_or((Decimal::ZERO, String::new(), Category::Z), of_rate)
}

/// A percentage means the account's rate of that height, if it has one; 0 means zero-rated.
pub fn of_percent(percent: Decimal, rates: &[SalesRate]) -> (Decimal, String, Category) {
    let category = if percent.is_zero() { Category::Z } else { Category::S };
    let known = rates.iter().find(|rate| rate.amount == percent && rate.category == category);
    known.map_or((percent.normalize(), String::new(), category), of_rate)
}

/// A checked number of a request; `None` when it is absent (or has a fault of its own).
pub fn number(text: &str) -> Option<Decimal> {
    text.parse().ok()
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
