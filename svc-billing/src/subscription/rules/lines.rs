//! The lines of a subscription: rows of its invoices to be, under the rules of document rows.

use proto::billing::{DocumentRowInput, SubscriptionLineInput};
use proto::{At, Faults};
use rust_decimal::Decimal;

use crate::document::rules::amounts::{Amounts, LIMIT, Row, cents};
use crate::document::rules::input;
use crate::settings::SalesRate;

/// The lines of a request, and what they come to. Meaningless when there are faults.
pub fn of_input(
    given: &[SubscriptionLineInput],
    rates: &[SalesRate],
    at: &At<'_>,
    faults: &mut Faults,
) -> (Vec<Row>, Amounts) {
    let list = at.name("lines");
    let line = |(index, line): (usize, &SubscriptionLineInput)| {
        let row = input::row(&row_input(line), rates, &list.index(index), faults);
        let unit_price = price(line, &row).unwrap_or(row.unit_price);
        Row { unit_price, ..row }
    };
    let lines: Vec<Row> = given.iter().enumerate().map(line).collect();
    let amounts = input::total(&lines, &list, faults);
    (lines, amounts)
}

/// The same lines as an invoice is created from them. A tax rate is meant by its code, so that a changed percentage
/// counts from then on; the percentage itself only helps where the code is gone.
pub fn as_rows(lines: &[Row], rates: &[SalesRate]) -> Vec<DocumentRowInput> {
    let row = |line: &Row| {
        let known = rates.iter().any(|rate| rate.code == line.vat_code);
        DocumentRowInput {
            name: line.name.clone(),
            title: line.description.clone(),
            quantity: line.quantity.to_string(),
            unit_price: line.unit_price.to_string(),
            unit: line.unit.clone(),
            vat_rate: line.vat_rate.to_string(),
            vat_code: if known { line.vat_code.clone() } else { String::new() },
        }
    };
    lines.iter().map(row).collect()
}

/// The price of a line that only tells what it comes to.
fn price(line: &SubscriptionLineInput, row: &Row) -> Option<Decimal> {
    if !line.unit_price.is_empty() {
        return None;
    }
    let excl = input::number(&line.total_excl_vat).or_else(|| {
        let whole = Decimal::ONE_HUNDRED + row.vat_rate;
        let incl = input::number(&line.total_incl_vat)?;
        Some(cents(incl.checked_mul(Decimal::ONE_HUNDRED)?.checked_div(whole)?))
    });
    Some(excl?.checked_div(row.quantity)?.round_dp(4).normalize()).filter(|price| price.abs() < LIMIT)
}

/// The title is required by the contract itself.
fn row_input(line: &SubscriptionLineInput) -> DocumentRowInput {
    DocumentRowInput {
        name: line.title.clone(),
        quantity: line.quantity.clone(),
        unit_price: line.unit_price.clone(),
        unit: line.unit.clone(),
        vat_code: line.vat_code.clone(),
        ..DocumentRowInput::default()
    }
}
