//! Reads a create request: its rows with their VAT, and its totals, which must agree with the rows.

use proto::api::Fault;
use proto::billing::{DocumentInput, DocumentRowInput};
use proto::{At, Faults};
use rust_decimal::Decimal;

use super::amounts::{self, Amounts, Content, Row, number};
use super::totals::Totals;
use super::vat_rate::VatRate;
use crate::settings::SalesRate;

/// The rows of a new document, and their totals. Meaningless when there are faults.
pub(crate) fn content(
    given: &DocumentInput,
    rates: &[SalesRate],
    at: &At<'_>,
    faults: &mut Faults,
) -> Content {
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
        && let Some(content) = totals.as_content(&given.title, rates, at, faults)
    {
        return content;
    }
    let amounts = total(&rows, &list, faults);
    if faults.is_empty() {
        totals.compare(&amounts, at, faults);
    }
    Content { rows, amounts }
}

/// The totals of the rows, which must be below the limit.
pub(crate) fn total(rows: &[Row], list: &At<'_>, faults: &mut Faults) -> Amounts {
    let amounts = amounts::amounts(&amounts::vat_groups(rows));
    if !amounts.fit() {
        let detail = "the total of the rows must be below 1,000,000,000,000";
        faults.add(list, Fault::OutOfRange, detail);
    }
    amounts
}

/// One row with its VAT. Whether it has a name is not checked here.
pub(crate) fn row(input: &DocumentRowInput, rates: &[SalesRate], at: &At<'_>, faults: &mut Faults) -> Row {
    let (name, description) = match (input.name.as_str(), input.title.as_str()) {
        ("", title) => (title, ""),
        (name, title) => (name, title),
    };
    let vat = vat(input, rates, at, faults);
    let row = Row {
        name: name.to_owned(),
        description: description.to_owned(),
        quantity: number(&input.quantity).unwrap_or(Decimal::ONE).normalize(),
        unit: input.unit.clone(),
        unit_price: number(&input.unit_price).unwrap_or_default().normalize(),
        vat_rate: vat.percent,
        vat_code: vat.code,
        category: vat.category,
    };
    if !row.fits() {
        let detail = "quantity times unit_price must be below 1,000,000,000,000";
        faults.add(&at.name("unit_price"), Fault::OutOfRange, detail);
    }
    row
}

/// The code takes precedence over the rate; without both, the row has the account's default rate.
fn vat(input: &DocumentRowInput, rates: &[SalesRate], at: &At<'_>, faults: &mut Faults) -> VatRate {
    if !input.vat_code.is_empty() {
        if let Some(rate) = rates.iter().find(|rate| rate.code == input.vat_code) {
            return rate.into();
        }
        let codes: Vec<&str> = rates.iter().map(|rate| rate.code.as_str()).collect();
        let detail = format!("vat_code must be the code of a tax rate for sales: {}", codes.join(", "));
        faults.add(&at.name("vat_code"), Fault::UnknownReference, detail);
    }
    number(&input.vat_rate)
        .map_or_else(|| VatRate::default_of(rates), |percent| VatRate::of_percent(percent, rates))
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
