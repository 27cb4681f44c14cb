//! Below the rows: the totals with the sentences that the law requires, and how to pay or where to sign.

use std::num::NonZeroU16;
use std::rc::Rc;

use krilla::tagging::{TableHeaderScope, Tag};

use super::{CODE_SIDE, INK, Layout, MM, MUTED, ROOM, columns};
use crate::color::WHITE;
use crate::pdf::fragment::{Align, Area, Fragment, Shape};
use crate::pdf::rows::{HEAD, LETTER};
use crate::pdf::tags::{DECORATION, Tags};
use crate::typeset::{Style, float};

/// Between the border of the closing block and its text.
const INSET: f32 = 6.0 * MM;
/// Between two totals.
const BETWEEN: f32 = 2.6 * MM;
/// Around the QR code.
const QUIET: f32 = 2.7 * MM;

impl Layout<'_> {
    /// The totals, and the closing block that goes below them.
    pub(super) fn ending(&mut self) -> (Fragment, Fragment) {
        let totals = self.totals();
        (totals, self.closing())
    }

    fn totals(&mut self) -> Fragment {
        let view = self.view;
        let mut block = Fragment::default();
        let width = 84.0 * MM;
        let mut area = Area { x: ROOM - width, y: 4.0 * MM, width };
        let table = self.tags.add(Tags::ROOT, Tag::Table);
        let (label, value) = (Style::new(LETTER, MUTED), Style::new(LETTER, INK));
        for total in &view.totals {
            area.y = self.pair(&mut block, table, area, total, (label, value)) + BETWEEN;
        }
        area.y -= 0.6 * MM;
        let color = view.palette.bar;
        block.draw(area.x, area.y, Shape::Rule { width, thickness: 1.0, color }, DECORATION);
        area.y += 3.0 * MM;
        let style = Style::new(12.0, view.palette.text).bold();
        area.y = self.pair(&mut block, table, area, &view.total, (style, style));
        area.y += 3.4 * MM;
        for (index, line) in view.after.iter().enumerate() {
            let style = if index + 1 == view.after.len() { value.bold() } else { value };
            area.y = self.pair(&mut block, table, area, line, (style, style)) + BETWEEN;
        }
        let mut area = Area { x: 0.0, y: 4.0 * MM, width: ROOM - width - 10.0 * MM };
        for note in &view.notes {
            area.y =
                self.tagged(&mut block, (Tags::ROOT, Tag::P), area, note, Style::new(8.0, MUTED)) + 2.0 * MM;
        }
        block.height += 7.0 * MM;
        block
    }

    /// How to pay, with a code to scan, or where to sign, on a faint background.
    fn closing(&mut self) -> Fragment {
        let view = self.view;
        let closing = &view.closing;
        let mut inner = Fragment::default();
        let room = ROOM - 2.0 * INSET;
        let code = self.pictures.code.as_ref().zip(closing.scan);
        let side = CODE_SIDE + 2.0 * QUIET;
        let width = if code.is_some() { room - side - 8.0 * MM } else { room };

        let mut area = Area { x: 0.0, y: 0.0, width };
        let kind = Tag::Hn(NonZeroU16::MIN.saturating_add(1), Some(closing.heading.to_owned()));
        let style = Style::new(10.0, view.palette.text).bold();
        area.y = self.tagged(&mut inner, (Tags::ROOT, kind), area, closing.heading, style) + 3.0 * MM;
        let sentence = (Tags::ROOT, Tag::P);
        area.y =
            self.tagged(&mut inner, sentence, area, &closing.sentence, Style::new(LETTER, INK)) + 4.5 * MM;
        self.payment_facts(&mut inner, area);
        if let Some((path, caption)) = code {
            let x = room - side;
            let background = Shape::Box { width: side, height: side, radius: 2.0, color: WHITE };
            inner.draw(x, 0.0, background, DECORATION);
            let role = self.tags.part(Tags::ROOT, Tag::Figure(Some(caption.to_owned())));
            inner.draw(x + QUIET, QUIET, Shape::Code(Rc::clone(path)), role);
            let role = self.tags.part(Tags::ROOT, Tag::P);
            // A little wider than the code, so that it stays on one line.
            let area = Area { x: x - 4.0 * MM, y: side + 1.6 * MM, width: side + 8.0 * MM };
            let caption = self.set(caption, Style::new(6.5, MUTED), area.width);
            inner.text(area, Align::Center, &caption, role);
        }
        self.signature(&mut inner, room);

        let height = inner.height + 2.0 * INSET;
        let mut block = Fragment { height, ..Fragment::default() };
        let color = view.palette.soft;
        block.draw(0.0, 0.0, Shape::Box { width: ROOM, height, radius: 3.0, color }, DECORATION);
        block.place(INSET, INSET, inner);
        block
    }

    /// Account, holder and reference, in two columns.
    fn payment_facts(&mut self, inner: &mut Fragment, mut area: Area) {
        let facts = &self.view.closing.facts;
        if facts.is_empty() {
            return;
        }
        let (label, value) = (Style::new(LETTER, MUTED), Style::new(LETTER, INK).bold());
        let labels = facts.iter().map(|fact| self.set(&fact.label, label, area.width).width());
        let second = labels.fold(0.0, f32::max) + 6.0 * MM;
        let table = self.tags.add(Tags::ROOT, Tag::Table);
        for fact in facts {
            let row = self.tags.add(table, Tag::TR);
            let left = Area { width: second, ..area };
            self.tagged(inner, (row, Tag::TH(TableHeaderScope::Row)), left, &fact.label, label);
            let right = Area { x: second, width: area.width - second, ..area };
            area.y = self.tagged(inner, (row, Tag::TD), right, &fact.value, value) + 2.2 * MM;
        }
    }

    fn signature(&mut self, inner: &mut Fragment, room: f32) {
        let labels = &self.view.closing.sign;
        if labels.is_empty() {
            return;
        }
        let gutter = 8.0 * MM;
        let width = columns(labels.len(), room, gutter);
        let y = inner.height + 16.0 * MM;
        for (index, label) in labels.iter().enumerate() {
            let x = float(index) * (width + gutter);
            inner.draw(x, y, Shape::Rule { width, thickness: 0.5, color: MUTED }, DECORATION);
            let area = Area { x, y: y + 1.6 * MM, width };
            self.tagged(inner, (Tags::ROOT, Tag::P), area, label, Style::new(HEAD, MUTED));
        }
    }
}
