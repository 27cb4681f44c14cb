//! Text in lines: which font has a character ([`fonts`]), how a text becomes glyphs ([`shape`]) and where its lines end
//! ([`lines`]).

mod face;
pub(crate) mod fonts;
mod installed;
mod lines;
mod region;
mod shape;

use krilla::text::KrillaGlyph;

use crate::color::Color;
pub(crate) use face::Face;
pub use installed::use_fonts_of;
pub(crate) use lines::typeset;
pub(crate) use region::Region;

/// The height of a capital letter, as a part of the font size. Texts are placed by it.
pub(crate) const CAPITAL: f32 = 0.714;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// In points.
    pub size: f32,
    pub bold: bool,
    pub color: Color,
    /// The space between two lines, as a part of the size.
    pub leading: f32,
    /// Added after each letter, in points.
    pub tracking: f32,
}

impl Style {
    pub(crate) fn new(size: f32, color: Color) -> Self {
        Self { size, bold: false, color, leading: 0.58, tracking: 0.0 }
    }

    pub(crate) fn bold(self) -> Self {
        Self { bold: true, ..self }
    }
}

/// A text in lines, ready to be drawn.
pub(crate) struct Paragraph {
    pub text: String,
    pub style: Style,
    pub is_right_to_left: bool,
    pub lines: Vec<Line>,
}

#[derive(Default)]
pub(crate) struct Line {
    /// From left to right.
    pub runs: Vec<Run>,
    /// Without the space at its end.
    pub width: f32,
    /// The width of the space at its end. In a text from right to left it is at the left.
    pub hanging: f32,
}

/// Glyphs of one font.
pub(crate) struct Run {
    pub face: &'static Face,
    pub x: f32,
    pub glyphs: Vec<KrillaGlyph>,
}

impl Paragraph {
    pub(crate) fn height(&self) -> f32 {
        let lines = float(self.lines.len());
        self.style.size * (lines * CAPITAL + (lines - 1.0).max(0.0) * self.style.leading)
    }

    pub(crate) fn width(&self) -> f32 {
        self.lines.iter().map(|line| line.width).fold(0.0, f32::max)
    }
}

/// A count as a number to calculate lengths with.
#[expect(clippy::cast_precision_loss, reason = "lines, columns and pages are few")]
pub(crate) fn float(count: usize) -> f32 {
    count as f32
}
