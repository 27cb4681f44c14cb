//! The rows of a document as input of the template, in columns as wide as their content.

use serde::Serialize;

use super::fit::{breakable, line, line_count, lines, width};
use crate::printed::Row as PrintedRow;
use crate::text::{self, Words};

/// The width of the text on the page, and font sizes, in points; the template has the same.
pub(super) const PAGE: f64 = 467.7;
pub(super) const LETTER: f64 = 9.0;
const SMALL: f64 = 8.0;
pub(super) const GUTTER: f64 = 14.0;
/// The space between a quantity and its unit.
const UNIT_GUTTER: f64 = 5.0;
/// A row with more lines than this may continue on a next page.
const WHOLE_ROW: usize = 24;

/// Widths in points; a column of no width is left out.
#[derive(Serialize)]
pub(super) struct Columns {
    quantity: f64,
    unit: f64,
    price: f64,
    vat: f64,
    amount: f64,
}

#[derive(Serialize)]
pub(super) struct Row {
    name: String,
    description: Vec<String>,
    quantity: String,
    unit: String,
    price: String,
    vat: String,
    amount: String,
    whole: bool,
}

impl Row {
    pub(super) fn new(row: &PrintedRow, words: &Words) -> Self {
        let language = words.language;
        Self {
            name: line(&row.name),
            description: lines(&row.description),
            quantity: text::quantity(row.quantity, language),
            unit: line(&row.unit),
            price: text::plain_price(row.unit_price, language),
            vat: words.row_vat(row.vat_rate, row.category),
            amount: text::amount(row.total_excl, language),
            whole: true,
        }
    }

    pub(super) fn fit(&mut self, columns: &Columns) {
        let room = columns.description();
        let count = line_count(&self.name, room / LETTER)
            + self.description.iter().map(|line| line_count(line, room / SMALL)).sum::<usize>();
        self.whole = count <= WHOLE_ROW;
        self.name = breakable(&self.name, room / LETTER);
        for line in &mut self.description {
            *line = breakable(line, room / SMALL);
        }
        self.quantity = breakable(&self.quantity, columns.quantity / LETTER);
        self.unit = breakable(&self.unit, columns.unit / LETTER);
        self.price = breakable(&self.price, columns.price / LETTER);
        self.amount = breakable(&self.amount, columns.amount / LETTER);
    }
}

impl Columns {
    /// As wide as their content, within bounds. Descriptions get the remaining width.
    pub(super) fn new(rows: &[Row], words: &Words) -> Self {
        let widest = |head: &str, cell: fn(&Row) -> &str, limit: f64| {
            let cells = rows.iter().map(|row| width(cell(row)) * LETTER).fold(0.0, f64::max);
            // Half a point more, so that rounding never breaks a line.
            if cells > 0.0 { (cells.max(width(head) * 7.5) + 0.5).min(limit) } else { 0.0 }
        };
        Self {
            quantity: widest(words.quantity, |row| &row.quantity, 74.0),
            unit: widest("", |row| &row.unit, 48.0),
            price: widest(words.unit_price, |row| &row.price, 84.0),
            vat: widest(words.vat, |row| &row.vat, 48.0),
            amount: widest(words.amount, |row| &row.amount, 96.0).max(52.0),
        }
    }

    fn description(&self) -> f64 {
        let others = [self.quantity, self.unit, self.price, self.vat, self.amount];
        let used: f64 = others.iter().filter(|width| **width > 0.0).map(|width| width + GUTTER).sum();
        if self.unit > 0.0 { PAGE - used + GUTTER - UNIT_GUTTER } else { PAGE - used }
    }
}
