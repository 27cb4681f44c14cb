//! Turns a text into glyphs: pieces of one font, script and direction are shaped as a whole.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use harfrust::{Direction, Script, ShapeOptions, ShapePlan, Tag, UnicodeBuffer};
use krilla::text::{GlyphId, KrillaGlyph};
use unicode_bidi::Level;
use unicode_script::{Script as UnicodeScript, UnicodeScript as _};
use unicode_segmentation::UnicodeSegmentation;

use super::face::Face;
use super::fonts;
use super::region::Region;

/// By the address of the face, direction and script.
type PlanKey = (usize, bool, UnicodeScript);

thread_local! {
    /// Which features a font has for a script: the same for every text. Bounded by the fonts and scripts that there are.
    static PLANS: RefCell<HashMap<PlanKey, Rc<ShapePlan>>> = RefCell::default();
    static BUFFER: RefCell<Option<UnicodeBuffer>> = RefCell::default();
}

/// A part of a text that is shaped as a whole.
pub(super) struct Piece {
    pub range: Range<usize>,
    pub face: &'static Face,
    pub is_right_to_left: bool,
    /// As they are seen, from left to right. Their widths are in em.
    pub glyphs: Vec<KrillaGlyph>,
    script: UnicodeScript,
}

impl Piece {
    fn new(range: Range<usize>, face: &'static Face, script: UnicodeScript, is_right_to_left: bool) -> Self {
        Self { range, face, is_right_to_left, glyphs: Vec::new(), script }
    }
}

/// `levels` are the directions of each byte; without them everything is from left to right. `tracking` is in em.
pub(super) fn shape(
    text: &str,
    bold: bool,
    region: Region,
    tracking: f32,
    levels: Option<&[Level]>,
) -> Vec<Piece> {
    let mut pieces = match plain_face(text, bold) {
        Some(face) if !text.is_empty() => vec![Piece::new(0..text.len(), face, UnicodeScript::Latin, false)],
        _ => pieces(text, bold, region.of_text(text), levels),
    };
    for piece in &mut pieces {
        shape_piece(text, piece, tracking);
    }
    pieces
}

/// The font of a text that is one piece, which most are: letters of Western Europe and what goes with them. Each is a letter
/// by itself, and none is part of another script.
fn plain_face(text: &str, bold: bool) -> Option<&'static Face> {
    let is_plain = |char| matches!(char, ' '..='~' | '\u{a0}'..='\u{ac}' | '\u{ae}'..='\u{24f}' | '\u{2013}'..='\u{2026}' | '€');
    let face = fonts::any(bold).filter(|_| text.chars().all(is_plain))?;
    (text.is_ascii() || text.chars().all(|char| face.has(char))).then_some(face)
}

fn pieces(text: &str, bold: bool, region: Region, levels: Option<&[Level]>) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut add = |at: usize, part: &str, face: &'static Face| {
        let is_right_to_left = levels.and_then(|levels| levels.get(at)).is_some_and(Level::is_rtl);
        extend(&mut pieces, at, part, face, is_right_to_left);
    };
    for (at, grapheme) in text.grapheme_indices(true) {
        if let Some(face) = fonts::face(grapheme, bold, region) {
            add(at, grapheme, face);
            continue;
        }
        // No font has both the letter and its marks.
        for (offset, char) in grapheme.char_indices() {
            let letter = &grapheme[offset..offset + char.len_utf8()];
            if let Some(face) = fonts::face(letter, bold, region).or_else(|| fonts::any(bold)) {
                add(at + offset, letter, face);
            }
        }
    }
    pieces
}

/// Adds a part of the text to the last piece if it is of the same kind, or begins another. Spaces and punctuation stay in the
/// font of the word before them, if it has them.
fn extend(pieces: &mut Vec<Piece>, at: usize, part: &str, face: &'static Face, is_right_to_left: bool) {
    let script = part.chars().map(|char| char.script()).find(|script| !is_neutral(*script));
    if let Some(piece) = pieces.last_mut() {
        let has = part.chars().all(|char| piece.face.has(char) || fonts::is_joiner(char));
        let has_font = std::ptr::eq(piece.face, face) || (script.is_none() && has);
        let has_script = script.is_none_or(|script| is_neutral(piece.script) || script == piece.script);
        if has_font && has_script && piece.is_right_to_left == is_right_to_left {
            piece.range.end = at + part.len();
            if is_neutral(piece.script) {
                piece.script = script.unwrap_or(piece.script);
            }
            return;
        }
    }
    let script = script.unwrap_or(UnicodeScript::Common);
    pieces.push(Piece::new(at..at + part.len(), face, script, is_right_to_left));
}

fn is_neutral(script: UnicodeScript) -> bool {
    matches!(script, UnicodeScript::Common | UnicodeScript::Inherited | UnicodeScript::Unknown)
}

fn shape_piece(text: &str, piece: &mut Piece, tracking: f32) {
    let engine = piece.face.shaper.shaper(&piece.face.reference).build();
    let direction = if piece.is_right_to_left { Direction::RightToLeft } else { Direction::LeftToRight };
    let plan = PLANS.with_borrow_mut(|plans| {
        let make = || {
            let tag = piece.script.short_name().as_bytes().try_into().ok().map(Tag::from_be_bytes);
            let script = tag.filter(|_| !is_neutral(piece.script)).and_then(Script::from_iso15924_tag);
            Rc::new(ShapePlan::new(&engine, direction, script, None, &[]))
        };
        let key = (std::ptr::from_ref(piece.face).addr(), piece.is_right_to_left, piece.script);
        plans.entry(key).or_insert_with(make).clone()
    });
    let mut buffer = BUFFER.take().unwrap_or_default();
    for (at, char) in text[piece.range.clone()].char_indices() {
        buffer.add(char, u32::try_from(piece.range.start + at).unwrap_or(u32::MAX));
    }
    buffer.set_direction(direction);
    if let Some(script) = plan.script() {
        buffer.set_script(script);
    }
    let shaped = engine.shape(buffer, ShapeOptions::new().plan(Some(&plan)));
    let em = piece.face.units_per_em;
    let starts: Vec<usize> = shaped.glyph_infos().iter().map(|info| info.cluster as usize).collect();
    let ends = ends(&starts, piece.is_right_to_left, piece.range.end);
    let glyphs = shaped.glyph_infos().iter().zip(shaped.glyph_positions());
    piece.glyphs = glyphs
        .zip(starts.iter().zip(ends))
        .map(|((info, position), (start, end))| {
            let is_letter = position.x_advance != 0;
            KrillaGlyph::new(
                GlyphId::new(info.glyph_id),
                em_of(position.x_advance, em) + if is_letter { tracking } else { 0.0 },
                em_of(position.x_offset, em),
                em_of(position.y_offset, em),
                em_of(position.y_advance, em),
                *start..end,
                None,
            )
        })
        .collect();
    BUFFER.set(Some(shaped.clear()));
}

#[expect(clippy::cast_precision_loss, reason = "units of a font are some thousands")]
fn em_of(units: i32, em: f32) -> f32 {
    units as f32 / em
}

/// Where the cluster of each glyph ends in the text: where the next one begins. Glyphs are in the order in which they are
/// seen, which from right to left is the reverse of the text's.
fn ends(starts: &[usize], is_right_to_left: bool, end: usize) -> Vec<usize> {
    let mut ends = vec![end; starts.len()];
    let (mut next, mut current) = (end, end);
    let in_text: Box<dyn Iterator<Item = usize>> =
        if is_right_to_left { Box::new(0..starts.len()) } else { Box::new((0..starts.len()).rev()) };
    for index in in_text {
        if starts[index] != current {
            next = current;
            current = starts[index];
        }
        ends[index] = next;
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_ends_where_the_next_one_begins() {
        assert_eq!(ends(&[0, 1, 1, 4], false, 6), [1, 4, 4, 6]);
        assert_eq!(ends(&[4, 1, 1, 0], true, 6), [6, 4, 4, 1]);
        assert!(ends(&[], true, 0).is_empty());
    }

    #[test]
    fn a_plain_text_is_shaped_as_any_other() {
        let glyphs = |pieces: Vec<Piece>| -> Vec<u32> {
            let glyphs = pieces.into_iter().flat_map(|piece| piece.glyphs);
            glyphs.map(|glyph| glyph.glyph_id.to_u32()).collect()
        };
        for text in ["Office, AVAT 12,50 – fi ffi", "€ 1.234,56 · “Crème brûlée” À–ž"] {
            let mut slow = pieces(text, true, Region::default(), None);
            for piece in &mut slow {
                shape_piece(text, piece, 0.0);
            }
            assert!(plain_face(text, true).is_some(), "{text}");
            assert_eq!(glyphs(shape(text, true, Region::default(), 0.0, None)), glyphs(slow), "{text}");
        }
        assert!(plain_face("e\u{301}", false).is_none() && plain_face("Ω", false).is_none());
    }

    #[test]
    fn every_byte_of_a_text_is_in_exactly_one_piece() {
        for text in ["", "abc", "a אב c", "e\u{301}x", "漢字 kana かな", "مرحبا 123"] {
            let pieces = shape(text, false, Region::default(), 0.0, None);
            let ends: Vec<usize> = pieces.iter().map(|piece| piece.range.end).collect();
            let starts: Vec<usize> = pieces.iter().map(|piece| piece.range.start).collect();
            assert_eq!(starts.first().copied().unwrap_or(0), 0);
            assert_eq!(ends.last().copied().unwrap_or(0), text.len(), "{text}");
            assert_eq!(starts.get(1..).unwrap_or_default(), &ends[..ends.len().saturating_sub(1)], "{text}");
        }
    }
}
