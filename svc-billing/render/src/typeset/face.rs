//! One font of a family: a weight of a typeface, in the forms that shaping and writing need it.

use harfrust::ShaperData;
use krilla::text::Font;
use skrifa::charmap::Charmap;
use skrifa::instance::{LocationRef, Size};
use skrifa::metrics::GlyphMetrics;
use skrifa::{FontRef, MetadataProvider};

pub(crate) struct Face {
    pub font: Font,
    pub units_per_em: f32,
    pub(super) reference: FontRef<'static>,
    pub(super) shaper: ShaperData,
    charmap: Charmap<'static>,
    metrics: GlyphMetrics<'static>,
}

impl Face {
    /// The `index`th font of a file. `None` if it is no font.
    pub(super) fn new(file: &'static [u8], index: u32) -> Option<Self> {
        let reference = FontRef::from_index(file, index).ok()?;
        let font = Font::new(file.into(), index)?;
        Some(Self {
            units_per_em: font.units_per_em(),
            font,
            shaper: ShaperData::new(&reference),
            charmap: reference.charmap(),
            metrics: reference.glyph_metrics(Size::unscaled(), LocationRef::default()),
            reference,
        })
    }

    pub(super) fn has(&self, char: char) -> bool {
        self.charmap.map(char).is_some_and(|glyph| glyph.to_u32() != 0)
    }

    /// The width of a character in em, as far as the font has it.
    pub(super) fn advance(&self, char: char) -> Option<f32> {
        Some(self.metrics.advance_width(self.charmap.map(char)?)? / self.units_per_em)
    }
}
