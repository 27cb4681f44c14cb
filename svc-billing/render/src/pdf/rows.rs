//! The rows of a document as texts, in columns as wide as their content.

use super::clean::Cleaner;
use crate::printed::Row as PrintedRow;
use crate::text::{self, Words};
use crate::typeset::fonts::width;

/// Font sizes and spaces between columns, in points.
pub(super) const LETTER: f32 = 9.0;
pub(super) const HEAD: f32 = 7.5;
pub(super) const GUTTER: f32 = 14.0;

/// Widths in points; a column of no width is left out.
pub(super) struct Columns {
    pub quantity: f32,
    pub unit: f32,
    pub price: f32,
    pub vat: f32,
    pub amount: f32,
}

pub(super) struct Row {
    pub name: String,
    pub description: Vec<String>,
    pub quantity: String,
    pub unit: String,
    pub price: String,
    pub vat: String,
    pub amount: String,
}

impl Row {
    pub(super) fn new(row: &PrintedRow, words: &Words, texts: &Cleaner) -> Self {
        let language = words.language;
        Self {
            name: texts.line(&row.name),
            description: texts.lines(&row.description),
            quantity: text::quantity(row.quantity, language),
            unit: texts.line(&row.unit),
            price: text::plain_price(row.unit_price, language),
            vat: words.row_vat(row.vat_rate, row.category),
            amount: text::amount(row.total_excl, language),
        }
    }
}

impl Columns {
    /// As wide as their content, within bounds. Descriptions get the remaining width.
    pub(super) fn new(rows: &[Row], words: &Words) -> Self {
        let widest = |head: &str, cell: fn(&Row) -> &str, limit: f32| {
            let cells = rows.iter().map(|row| width(cell(row)) * LETTER).fold(0.0, f32::max);
            // Half a point more, so that rounding never breaks a line.
            if cells > 0.0 { (cells.max(width(head) * HEAD) + 0.5).min(limit) } else { 0.0 }
        };
        Self {
            quantity: widest(words.quantity, |row| &row.quantity, 74.0),
            unit: widest("", |row| &row.unit, 48.0),
            price: widest(words.unit_price, |row| &row.price, 84.0),
            vat: widest(words.vat, |row| &row.vat, 48.0),
            amount: widest(words.amount, |row| &row.amount, 96.0).max(52.0),
        }
    }
}
