//! Parts of a page: drawings that can be measured, cut and placed before they are written.

use std::rc::Rc;

use krilla::geom::Path;

use super::logo::Picture;
use super::tags::Role;
use crate::color::Color;
use crate::typeset::{CAPITAL, Paragraph, float};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    /// Where the text begins: at the left, or at the right if it reads from there.
    Start,
    Left,
    Right,
    Center,
}

/// Where a text goes: its upper left corner and the width that it is aligned in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub x: f32,
    pub y: f32,
    pub width: f32,
}

#[derive(Clone)]
pub(super) enum Shape {
    /// A line of a text.
    Line(Rc<Paragraph>, usize),
    Box {
        width: f32,
        height: f32,
        radius: f32,
        color: Color,
    },
    Rule {
        width: f32,
        thickness: f32,
        color: Color,
    },
    Logo {
        picture: Rc<Picture>,
        width: f32,
        height: f32,
    },
    /// All modules of a QR code.
    Code(Rc<Path>),
    /// A text around its place, at an angle in degrees.
    Watermark(Rc<Paragraph>, f32),
}

/// A shape at its upper left corner; a line of text where its baseline begins.
#[derive(Clone)]
pub(super) struct Drawing {
    pub x: f32,
    pub y: f32,
    pub shape: Shape,
    pub role: Role,
}

#[derive(Clone, Default)]
pub(super) struct Fragment {
    pub drawings: Vec<Drawing>,
    pub height: f32,
}

impl Fragment {
    /// Draws a shape. The height stays as it is.
    pub(super) fn draw(&mut self, x: f32, y: f32, shape: Shape, role: Role) {
        self.drawings.push(Drawing { x, y, shape, role });
    }

    /// Places a text and returns where it ends.
    pub(super) fn text(&mut self, area: Area, align: Align, text: &Rc<Paragraph>, role: Role) -> f32 {
        let pitch = text.style.size * (CAPITAL + text.style.leading);
        for (index, line) in text.lines.iter().enumerate() {
            let left = match align {
                Align::Start if text.is_right_to_left => area.width - line.width,
                Align::Left | Align::Start => 0.0,
                Align::Right => area.width - line.width,
                Align::Center => (area.width - line.width) / 2.0,
            };
            let left = if text.is_right_to_left { left - line.hanging } else { left };
            let baseline = area.y + text.style.size * CAPITAL + pitch * float(index);
            self.draw(area.x + left, baseline, Shape::Line(Rc::clone(text), index), role);
        }
        let end = area.y + text.height();
        self.height = self.height.max(end);
        end
    }

    /// Places another fragment and returns where it ends.
    pub(super) fn place(&mut self, x: f32, y: f32, other: Self) -> f32 {
        let moved = other.drawings.into_iter().map(|it| Drawing { x: it.x + x, y: it.y + y, ..it });
        self.drawings.extend(moved);
        let end = y + other.height;
        self.height = self.height.max(end);
        end
    }

    /// Cuts off what is below `room`, between two lines of text, and leaves `pad` above the rest. `None` if there is no line
    /// of text on both sides of the cut.
    pub(super) fn cut(&mut self, room: f32, pad: f32) -> Option<Self> {
        let is_above = |it: &Drawing| it.bottom() <= room;
        let is_text = |it: &&Drawing| matches!(it.shape, Shape::Line(..));
        let texts = || self.drawings.iter().filter(is_text);
        if !texts().any(is_above) || texts().all(is_above) {
            return None;
        }
        let (above, below): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.drawings).into_iter().partition(is_above);
        let shift = below.iter().map(Drawing::top).fold(f32::MAX, f32::min) - pad;
        let rest = Self {
            height: self.height - shift,
            drawings: below.into_iter().map(|it| Drawing { y: it.y - shift, ..it }).collect(),
        };
        self.height = above.iter().map(Drawing::bottom).fold(0.0, f32::max);
        self.drawings = above;
        Some(rest)
    }
}

impl Drawing {
    fn top(&self) -> f32 {
        match &self.shape {
            Shape::Line(text, _) => self.y - text.style.size * CAPITAL,
            _ => self.y,
        }
    }

    fn bottom(&self) -> f32 {
        match &self.shape {
            // Letters such as g go below the baseline.
            Shape::Line(text, _) => self.y + text.style.size * 0.3,
            Shape::Box { height, .. } | Shape::Logo { height, .. } => self.y + height,
            _ => self.y,
        }
    }
}
