//! Lays a document out on pages of A4: the head with both addresses, the rows, and what follows them.
//!
//! Lengths are in points, from the upper left corner of the page.

mod ending;
mod head;
mod table;

use std::rc::Rc;

use krilla::geom::Path;
use krilla::tagging::ArtifactType;

use super::fragment::{Align, Area, Fragment, Shape};
use super::logo::Picture;
use super::tags::{DECORATION, Element, Role, Tags};
use super::view::{Labelled, View};
use crate::color::Color;
use crate::typeset::{Paragraph, Region, Style, float, typeset};

pub(super) const WIDTH: f32 = 595.276;
pub(super) const HEIGHT: f32 = 841.89;
/// Of the QR code.
pub(super) const CODE_SIDE: f32 = 24.0 * MM;

const MM: f32 = 72.0 / 25.4;
const LEFT: f32 = 25.0 * MM;
const TOP: f32 = 24.0 * MM;
/// Between the last line of a page and its end, if the foot needs no more.
const MARGIN_BELOW: f32 = 24.0 * MM;
/// Between the text and the foot.
const ABOVE_FOOT: f32 = 7.0 * MM;
/// The width of the text.
const ROOM: f32 = WIDTH - LEFT - 20.0 * MM;

const INK: Color = Color(0x1b, 0x24, 0x30);
const MUTED: Color = Color(0x5b, 0x66, 0x75);
const HAIR: Color = Color(0xd9, 0xde, 0xe4);

/// The images of a document.
pub(super) struct Pictures {
    pub logo: Option<Rc<Picture>>,
    /// A square with sides of [`CODE_SIDE`].
    pub code: Option<Rc<Path>>,
}

struct Layout<'a> {
    view: &'a View,
    pictures: &'a Pictures,
    region: Region,
    tags: Tags,
    pages: Vec<Fragment>,
    /// Where the next fragment goes on the last page.
    y: f32,
    /// Where the text of a page ends.
    bottom: f32,
}

/// The pages, and the structure of what is on them.
pub(super) fn pages(view: &View, pictures: &Pictures, region: Region) -> (Vec<Fragment>, Tags) {
    let mut layout = Layout {
        view,
        pictures,
        region,
        tags: Tags::new(),
        pages: Vec::new(),
        y: TOP,
        bottom: HEIGHT - MARGIN_BELOW,
    };
    // A long foot takes its room from the text.
    let foot = layout.foot(1, 1).height + ABOVE_FOOT + 4.0 * MM;
    layout.bottom = HEIGHT - foot.clamp(MARGIN_BELOW, HEIGHT / 3.0);
    layout.turn_page();
    layout.head();
    layout.title();
    layout.facts();
    layout.table();
    layout.feet();
    (layout.pages, layout.tags)
}

impl Layout<'_> {
    fn set(&self, text: &str, style: Style, width: f32) -> Rc<Paragraph> {
        Rc::new(typeset(text, style, width, self.region))
    }

    /// Adds an element to the document, and a text in it. Returns where the text ends.
    fn tagged(
        &mut self,
        block: &mut Fragment,
        (parent, kind): (Element, impl Into<krilla::tagging::TagKind>),
        area: Area,
        text: &str,
        style: Style,
    ) -> f32 {
        let role = self.tags.part(parent, kind);
        let text = self.set(text, style, area.width);
        block.text(area, Align::Start, &text, role)
    }

    /// Begins a page: the bars, the word across a draft and, from the second page on, which document it is.
    fn turn_page(&mut self) {
        let view = self.view;
        let palette = &view.palette;
        let mut page = Fragment::default();
        let bar = |width, color| Shape::Box { width, height: 2.4 * MM, radius: 0.0, color };
        page.draw(0.0, 0.0, bar(WIDTH, palette.bar), DECORATION);
        page.draw(0.0, 0.0, bar(25.0 * MM, palette.second), DECORATION);
        if let Some(draft) = &view.draft {
            let style = Style { tracking: 6.0, ..Style::new(112.0, Color(0xf1, 0xf3, 0xf5)).bold() };
            let mark = self.set(draft, style, f32::MAX);
            let role = Role::Artifact(ArtifactType::Watermark);
            page.draw(WIDTH / 2.0, HEIGHT / 2.0, Shape::Watermark(mark, -52.0), role);
        }
        if !self.pages.is_empty() {
            let role = Role::Artifact(ArtifactType::Header);
            let width = ROOM / 2.0 - 5.0 * MM;
            let running = Style::new(8.0, palette.text).bold();
            let parts = [
                (LEFT, Align::Start, &view.seller.name, Style::new(8.0, MUTED)),
                (LEFT + ROOM - width, Align::Right, &view.running, running),
            ];
            for (x, align, text, style) in parts {
                let text = self.set(text, style, width);
                // A long one grows upwards, as far as there is room.
                let y = (TOP - 7.0 * MM - text.height()).max(4.0 * MM);
                page.text(Area { x, y, width }, align, &text, role);
            }
        }
        self.pages.push(page);
        self.y = TOP;
    }

    /// The room that is left on the page.
    fn room(&self) -> f32 {
        self.bottom - self.y
    }

    fn place(&mut self, fragment: Fragment) {
        if let Some(page) = self.pages.last_mut() {
            self.y = page.place(LEFT, self.y, fragment);
        }
    }

    /// A label at the left and its value at the right, as a row of a table. Returns where it ends.
    fn pair(
        &mut self,
        block: &mut Fragment,
        table: Element,
        area: Area,
        pair: &Labelled,
        (label, value): (Style, Style),
    ) -> f32 {
        use krilla::tagging::{TableHeaderScope, Tag};
        let amount = self.set(&pair.value, value, area.width * 0.7);
        let row = self.tags.add(table, Tag::TR);
        let left = Area { width: area.width - amount.width() - 5.0 * MM, ..area };
        let end = self.tagged(block, (row, Tag::TH(TableHeaderScope::Row)), left, &pair.label, label);
        let role = self.tags.part(row, Tag::TD);
        block.text(area, Align::Right, &amount, role).max(end)
    }

    fn feet(&mut self) {
        let count = self.pages.len();
        let feet: Vec<Fragment> = (1..=count).map(|number| self.foot(number, count)).collect();
        for (page, foot) in self.pages.iter_mut().zip(feet) {
            page.place(LEFT, self.bottom + ABOVE_FOOT, foot);
        }
    }

    /// At the foot of every page: who the seller is, and which page of how many it is.
    fn foot(&self, number: usize, count: usize) -> Fragment {
        let view = self.view;
        let role = Role::Artifact(ArtifactType::Footer);
        let style = Style::new(7.0, MUTED);
        let mut foot = Fragment::default();
        foot.draw(0.0, 0.0, Shape::Rule { width: ROOM, thickness: 0.5, color: HAIR }, DECORATION);
        let mut y = 2.2 * MM;
        let number = self.set(&format!("{} {number} {} {count}", view.page, view.of), style, ROOM);
        foot.text(Area { x: 0.0, y, width: ROOM }, Align::Right, &number, role);
        let width = ROOM - number.width() - 8.0 * MM;
        if !view.footer.is_empty() {
            let text = self.set(&view.footer, Style { color: INK, ..style }, width);
            y = foot.text(Area { x: 0.0, y, width }, Align::Start, &text, role) + 1.6 * MM;
        }
        let details = self.set(&view.details.join("  ·  "), style, width);
        foot.text(Area { x: 0.0, y, width }, Align::Start, &details, role);
        foot
    }
}

/// Widths of columns beside each other, with a space between them.
fn columns(count: usize, room: f32, gutter: f32) -> f32 {
    let count = float(count.max(1));
    (room - gutter * (count - 1.0)) / count
}
