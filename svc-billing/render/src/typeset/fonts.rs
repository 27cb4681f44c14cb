//! Which font draws a character: Noto Sans, which is part of this program, or else one that is installed.

use std::sync::LazyLock;

use super::face::Face;
use super::installed;
use super::region::Region;

/// Regular and bold.
static EMBEDDED: LazyLock<Vec<Face>> = LazyLock::new(|| {
    let files = [notosans::REGULAR_TTF, notosans::BOLD_TTF];
    files.into_iter().filter_map(|file| Face::new(file, 0)).collect()
});

/// The embedded fonts, the preferred weight first.
fn embedded(bold: bool) -> impl Iterator<Item = &'static Face> {
    let (first, second) = if bold { (1, 0) } else { (0, 1) };
    [first, second].into_iter().filter_map(|index| EMBEDDED.get(index))
}

/// The font that draws everything in this part of a text.
pub(super) fn face(part: &str, bold: bool, region: Region) -> Option<&'static Face> {
    let has_all = |face: &&'static Face| part.chars().all(|char| face.has(char) || is_joiner(char));
    embedded(bold).find(has_all).or_else(|| {
        let missing = part.chars().find(|char| !is_joiner(*char) && !is_embedded(*char));
        let first = missing.or_else(|| part.chars().find(|char| !is_joiner(*char)))?;
        installed::face(first, bold, region).filter(has_all)
    })
}

/// A font for a character that no font has. The embedded ones have a glyph for "unknown".
pub(super) fn any(bold: bool) -> Option<&'static Face> {
    embedded(bold).next()
}

pub(crate) fn is_embedded(char: char) -> bool {
    EMBEDDED.iter().any(|face| face.has(char))
}

/// Whether some font has this character. Private characters mean something else in each font.
pub(crate) fn has_glyph(char: char) -> bool {
    is_embedded(char) || (!is_private(char) && installed::face(char, false, Region::default()).is_some())
}

/// They choose a form of their neighbours and draw nothing.
pub(super) fn is_joiner(char: char) -> bool {
    matches!(char, '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}')
}

fn is_private(char: char) -> bool {
    matches!(char, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}')
}

/// The width of a text in em, letter by letter in the bold font: about the widest that it can be.
pub(crate) fn width(text: &str) -> f32 {
    let region = Region::default();
    let advance = |char: char| {
        let face = face(char.encode_utf8(&mut [0; 4]), true, region)?;
        face.advance(char)
    };
    text.chars().filter_map(advance).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_weights_are_part_of_the_program() {
        assert_eq!(EMBEDDED.len(), 2);
        assert!(width("W") > width("i"));
        assert!(is_embedded('€') && is_embedded('Ж') && !is_embedded('漢'));
    }

    #[test]
    fn private_characters_have_no_glyph_whatever_is_installed() {
        assert!(!has_glyph('\u{e000}') && !has_glyph('\u{10fffd}'));
    }
}
