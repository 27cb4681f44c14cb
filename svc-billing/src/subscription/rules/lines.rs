//! The lines of a subscription, which become rows of its invoices and follow the rules of document rows.

use proto::billing::{DocumentRowInput, SubscriptionLineInput};
use proto::{At, Faults};
use rust_decimal::Decimal;

use crate::document::rules::amounts::{Amounts, LIMIT, Row, cents, number};
use crate::document::rules::input;
use crate::settings::SalesRate;

/// The lines of a request, and their amounts. Not usable if faults were added.
pub(crate) fn of_input(
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

/// The lines as input for an invoice. A tax rate is given by its code, so that a changed percentage applies from then
/// on; the percentage itself is used only if the code no longer exists.
pub(crate) fn as_rows(lines: &[Row], rates: &[SalesRate]) -> Vec<DocumentRowInput> {
    let row = |line: &Row| {
        let exists = rates.iter().any(|rate| rate.code == line.vat_code);
        DocumentRowInput {
            name: line.name.clone(),
            title: line.description.clone(),
            quantity: line.quantity.to_string(),
            unit_price: line.unit_price.to_string(),
            unit: line.unit.clone(),
            vat_rate: line.vat_rate.to_string(),
            vat_code: if exists { line.vat_code.clone() } else { String::new() },
        }
    };
    lines.iter().map(row).collect()
}

/// The price of a line that was given with its total only.
fn price(line: &SubscriptionLineInput, row: &Row) -> Option<Decimal> {
    if !line.unit_price.is_empty() {
        return None;
    }
    let excl = number(&line.total_excl_vat).or_else(|| {
        let whole = Decimal::ONE_HUNDRED + row.vat_rate;
        let incl = number(&line.total_incl_vat)?;
        Some(cents(incl.checked_mul(Decimal::ONE_HUNDRED)?.checked_div(whole)?))
    });
    Some(excl?.checked_div(row.quantity)?.round_dp(4).normalize()).filter(|price| price.abs() < LIMIT)
}

/// A line as the input of a document row. The contract requires the title, so it is not checked here.
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
