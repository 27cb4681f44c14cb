//! Above the rows: logo and addresses, what the document is, and its dates and references.

use std::num::NonZeroU16;
use std::rc::Rc;

use krilla::tagging::Tag;

use super::{INK, Layout, MM, MUTED, ROOM, columns};
use crate::color::WHITE;
use crate::pdf::fragment::{Align, Area, Fragment, Shape};
use crate::pdf::rows::{HEAD, LETTER};
use crate::pdf::tags::{DECORATION, Tags};
use crate::typeset::{Style, float};

/// The head begins above the margin, so that the address of the buyer is where the window of an envelope is.
const ABOVE: f32 = -9.0 * MM;
/// Where the address of the buyer begins.
const BUYER: f32 = 27.8 * MM;
const HEAD_HEIGHT: f32 = 60.0 * MM;

impl Layout<'_> {
    pub(super) fn head(&mut self) {
        let mut head = Fragment { height: HEAD_HEIGHT, ..Fragment::default() };
        self.logo(&mut head);
        self.seller(&mut head);
        self.buyer(&mut head);
        self.place(head);
    }

    /// The logo, or the name of the seller.
    fn logo(&mut self, head: &mut Fragment) {
        let view = self.view;
        if let Some(picture) = &self.pictures.logo {
            let (width, height) = picture.size();
            // As high as there is room for, unless that is too wide.
            let scale = (18.0 * MM / height).min(70.0 * MM / width);
            let alt = if view.author.is_empty() { "Logo" } else { &view.author };
            let role = self.tags.part(Tags::ROOT, Tag::Figure(Some(alt.to_owned())));
            let (width, height) = (width * scale, height * scale);
            head.draw(0.0, ABOVE, Shape::Logo { picture: Rc::clone(picture), width, height }, role);
        } else {
            let style = Style::new(15.0, view.palette.text).bold();
            let area = Area { x: 0.0, y: ABOVE, width: 88.0 * MM };
            self.tagged(head, (Tags::ROOT, Tag::P), area, &view.seller.name, style);
        }
    }

    fn seller(&mut self, head: &mut Fragment) {
        let view = self.view;
        let style = Style { leading: 0.6, ..Style::new(8.0, MUTED) };
        let between = style.size * style.leading;
        let seller = self.tags.add(Tags::ROOT, Tag::Div);
        let width = 52.0 * MM;
        let mut area = Area { x: ROOM - width, y: ABOVE, width };
        // Without a logo the name is at the left already.
        if self.pictures.logo.is_some() {
            let style = Style { color: INK, ..style.bold() };
            area.y = self.tagged(head, (seller, Tag::P), area, &view.seller.name, style) + between;
        }
        for line in &view.seller.lines {
            area.y = self.tagged(head, (seller, Tag::P), area, line, style) + between;
        }
    }

    /// The return address in one line, and the address below it.
    fn buyer(&mut self, head: &mut Fragment) {
        let view = self.view;
        let width = 90.0 * MM;
        let sender = self.set(&view.sender, Style::new(6.5, MUTED), width);
        // More lines grow upwards as long as there is room, so that the address stays in the window.
        let y = (BUYER - 3.0 * MM - sender.height()).max(14.5 * MM);
        let role = self.tags.part(Tags::ROOT, Tag::P);
        let end = head.text(Area { x: 0.0, y, width }, Align::Start, &sender, role) + 3.0 * MM;
        let style = Style { leading: 0.62, ..Style::new(10.0, INK) };
        let buyer = self.tags.add(Tags::ROOT, Tag::Div);
        let mut area = Area { x: 0.0, y: end.max(BUYER), width };
        for line in &view.buyer {
            let role = self.tags.part(buyer, Tag::P);
            let line = self.set(line, style, width);
            // In a window everything is at the left.
            area.y = head.text(area, Align::Left, &line, role) + style.size * style.leading;
        }
    }

    pub(super) fn title(&mut self) {
        let view = self.view;
        let mut title = Fragment::default();
        let role = self.tags.part(Tags::ROOT, Tag::Hn(NonZeroU16::MIN, Some(view.title.clone())));
        let heading = self.set(view.heading, Style::new(23.0, view.palette.text).bold(), ROOM);
        let mut y = title.text(Area { x: 0.0, y: 0.0, width: ROOM }, Align::Start, &heading, role);
        if let Some(draft) = &view.draft {
            let style = Style { tracking: 0.8, ..Style::new(8.0, WHITE).bold() };
            let word = self.set(draft, style, ROOM);
            let (x, top) = (heading.width() + 4.0 * MM, y - word.height() - 6.5);
            let (width, height) = (word.width() + 12.0, word.height() + 8.0);
            title.draw(x, top, Shape::Box { width, height, radius: 2.0, color: INK }, DECORATION);
            let role = self.tags.part(Tags::ROOT, Tag::P);
            title.text(Area { x: x + 6.0, y: top + 4.0, width: ROOM }, Align::Left, &word, role);
        }
        if !view.subject.is_empty() {
            let area = Area { x: 0.0, y: y + 4.0 * MM, width: ROOM };
            y = self.tagged(&mut title, (Tags::ROOT, Tag::P), area, &view.subject, Style::new(11.0, MUTED));
        }
        title.height = y + 6.5 * MM;
        self.place(title);
    }

    /// Number, dates and references: on one line if they fit, else in columns of the same width.
    pub(super) fn facts(&mut self) {
        let facts = &self.view.facts;
        let (label, value) = (Style::new(HEAD, MUTED), Style::new(LETTER, INK).bold());
        let width = |text: &str, style| self.set(text, style, ROOM).width();
        let widths: Vec<f32> =
            facts.iter().map(|fact| width(&fact.label, label).max(width(&fact.value, value))).collect();
        let gaps = float(facts.len().saturating_sub(1));
        let free = ROOM - widths.iter().sum::<f32>();
        let is_one_line = free >= 7.0 * MM * gaps;
        let per_line = if matches!(facts.len(), 5 | 6) { 3 } else { 4 };
        let column = columns(per_line, ROOM, 5.0 * MM);

        let list = self.tags.add(Tags::ROOT, Tag::Div);
        let mut block = Fragment::default();
        let (mut x, mut y) = (0.0, 0.0);
        for (index, (fact, own)) in facts.iter().zip(&widths).enumerate() {
            if !is_one_line && index > 0 && index % per_line == 0 {
                (x, y) = (0.0, block.height + 4.0 * MM);
            }
            let (width, step) = if is_one_line {
                (own + 0.1, own + free / gaps.max(1.0))
            } else {
                (column, column + 5.0 * MM)
            };
            let area = Area { x, y, width };
            let end = self.tagged(&mut block, (list, Tag::P), area, &fact.label, label);
            let area = Area { y: end + 1.9 * MM, ..area };
            self.tagged(&mut block, (list, Tag::P), area, &fact.value, value);
            x += step;
        }
        block.height += 8.0 * MM;
        self.place(block);
    }
}
