//! The rows over as many pages as they take, with their head repeated, and the totals beside the last row.

use krilla::tagging::{ArtifactType, TableHeaderScope, Tag};

use super::{HAIR, INK, Layout, MM, MUTED, ROOM, TOP};
use crate::pdf::fragment::{Align, Area, Fragment, Shape};
use crate::pdf::rows::{GUTTER, HEAD, LETTER, Row};
use crate::pdf::tags::{DECORATION, Element, Role, Tags};
use crate::pdf::view::View;
use crate::typeset::Style;

/// Above and below the text of a row.
const PAD: f32 = 1.95 * MM;
/// Of the text of a description.
const SMALL: f32 = 8.0;
/// The space between a quantity and its unit.
const UNIT_GUTTER: f32 = 5.0;
/// A higher row may continue on the next page, about 24 lines.
const MAX_WHOLE: f32 = 270.0;

impl Layout<'_> {
    pub(super) fn table(&mut self) {
        let view = self.view;
        let columns = columns(view);
        let table = self.tags.add(Tags::ROOT, Tag::Table);
        let head = self.tags.add(table, Tag::THead);
        let body = self.tags.add(table, Tag::TBody);
        let titles = self.tags.add(head, Tag::TR);
        let roles: Vec<Role> =
            columns.iter().map(|_| self.tags.part(titles, Tag::TH(TableHeaderScope::Column))).collect();
        let first = self.table_head(&columns, &roles);
        let repeated = vec![Role::Artifact(ArtifactType::PaginationOther); columns.len()];
        let again = self.table_head(&columns, &repeated);
        self.place(first);

        let rows: Vec<Fragment> = view.rows.iter().map(|row| self.row(row, &columns, body)).collect();
        let (totals, closing) = self.ending();
        let ending = totals.height + closing.height;
        let page = self.bottom - TOP - again.height;
        let last = rows.len().saturating_sub(1);
        for (index, row) in rows.into_iter().enumerate() {
            // The totals are never alone on a page.
            let with = if index == last && row.height + ending <= page { ending } else { 0.0 };
            let is_whole = row.height <= MAX_WHOLE;
            if row.height + with > self.room() && (is_whole || row.height + with <= page && with > 0.0) {
                self.turn_page();
                self.place(again.clone());
            }
            self.flow(row, Some(&again));
        }
        // Together if they fit on a page.
        if ending > self.room() && ending <= page {
            self.turn_page();
            self.place(again.clone());
        }
        self.flow(totals, Some(&again));
        if closing.height > self.room() {
            self.turn_page();
        }
        self.place(closing);
    }

    /// Places a fragment, over several pages if it is higher than the room that is left.
    fn flow(&mut self, mut fragment: Fragment, head: Option<&Fragment>) {
        while fragment.height > self.room() {
            if let Some(rest) = fragment.cut(self.room(), PAD) {
                self.place(std::mem::replace(&mut fragment, rest));
            } else if self.y <= TOP + head.map_or(0.0, |head| head.height) + 1.0 {
                // Not one line fits on an empty page.
                break;
            }
            self.turn_page();
            if let Some(head) = head {
                self.place(head.clone());
            }
        }
        self.place(fragment);
    }

    fn table_head(&self, columns: &[Column], roles: &[Role]) -> Fragment {
        let mut head = Fragment::default();
        let style = Style::new(HEAD, MUTED).bold();
        for (column, role) in columns.iter().zip(roles) {
            let text = self.set(column.title, style, column.width);
            head.text(Area { x: column.x, y: 0.0, width: column.width }, column.align, &text, *role);
        }
        let y = head.height + 2.0 * MM;
        let color = self.view.palette.bar;
        head.draw(0.0, y, Shape::Rule { width: ROOM, thickness: 1.0, color }, DECORATION);
        head.height = y;
        head
    }

    fn row(&mut self, row: &Row, columns: &[Column], body: Element) -> Fragment {
        let mut block = Fragment::default();
        let element = self.tags.add(body, Tag::TR);
        for column in columns {
            let role = self.tags.part(element, Tag::TD);
            let mut area = Area { x: column.x, y: PAD, width: column.width };
            let text = self.set((column.cell)(row), Style::new(LETTER, INK), column.width);
            area.y = block.text(area, column.align, &text, role);
            if column.has_description {
                let style = Style::new(SMALL, MUTED);
                for line in &row.description {
                    area.y += style.leading * LETTER;
                    let text = self.set(line, style, column.width);
                    area.y = block.text(area, column.align, &text, role);
                }
            }
        }
        let y = block.height + PAD;
        block.draw(0.0, y, Shape::Rule { width: ROOM, thickness: 0.5, color: HAIR }, DECORATION);
        block.height = y;
        block
    }
}

struct Column {
    title: &'static str,
    x: f32,
    width: f32,
    align: Align,
    cell: fn(&Row) -> &str,
    has_description: bool,
}

/// The description gets the width that the others leave.
fn columns(view: &View) -> Vec<Column> {
    type Cell = fn(&Row) -> &str;
    let (head, widths) = (&view.head, &view.columns);
    let others: [(&'static str, f32, Align, f32, Cell); 5] = [
        (head.quantity, widths.quantity, Align::Right, GUTTER, |row| &row.quantity),
        ("", widths.unit, Align::Start, UNIT_GUTTER, |row| &row.unit),
        (head.price, widths.price, Align::Right, GUTTER, |row| &row.price),
        (head.vat, widths.vat, Align::Right, GUTTER, |row| &row.vat),
        (head.amount, widths.amount, Align::Right, GUTTER, |row| &row.amount),
    ];
    let mut columns = Vec::new();
    let mut right = ROOM;
    for (title, width, align, gutter, cell) in others.into_iter().rev().filter(|(_, width, ..)| *width > 0.0)
    {
        right -= width;
        columns.push(Column { title, x: right, width, align, cell, has_description: false });
        right -= gutter;
    }
    let cell: Cell = |row| &row.name;
    let title = head.description;
    columns.push(Column { title, x: 0.0, width: right, align: Align::Start, cell, has_description: true });
    columns.reverse();
    columns
}
