//! Prepares texts of any origin for the page: only characters that the fonts can draw, and break opportunities in words
//! that are wider than their column. Nothing here is ever read as markup.

use std::sync::LazyLock;

use ttf_parser::Face;

use super::world::TYPEFACES;

static FACES: LazyLock<Vec<Face<'static>>> =
    LazyLock::new(|| TYPEFACES.into_iter().filter_map(|bytes| Face::parse(bytes, 0).ok()).collect());

/// Replacements for a character that no font has, in order of preference.
const REPLACEMENTS: [char; 3] = ['\u{25a1}', '\u{fffd}', '?'];
const BREAK: char = '\u{200b}';

/// One line of text: line ends and tabs become spaces.
pub(super) fn line(text: &str) -> String {
    let replacement = replacement();
    let mut clean = String::with_capacity(text.len());
    for char in text.trim().chars() {
        match char {
            char if char.is_control() || char == '\u{2028}' || char == '\u{2029}' => clean.push(' '),
            char if is_invisible(char) || (is_pictograph(char) && !has_glyph(char)) => {}
            char if has_glyph(char) => clean.push(char),
            char if char.is_whitespace() => clean.push(' '),
            _ => clean.push(replacement),
        }
    }
    clean.trim().to_owned()
}

/// Text of several lines, as its writer broke them; empty lines at both ends are left out.
pub(super) fn lines(text: &str) -> Vec<String> {
    text.trim().lines().map(line).collect()
}

/// Text for the metadata of the file: nothing is drawn there, but it must be valid XML.
pub(super) fn metadata(text: &str) -> String {
    // PDF/A allows a string of 32 kB.
    text.chars()
        .map(|char| if char.is_control() { ' ' } else { char })
        .filter(|char| !matches!(u32::from(*char) & 0xffff, 0xfffe | 0xffff))
        .take(2000)
        .collect::<String>()
        .trim()
        .to_owned()
}

/// Lets words that are wider than `width` (in em) break, after punctuation where that is enough; other words stay whole.
pub(super) fn breakable(text: &str, width: f64) -> String {
    if self::width(text) <= width {
        return text.to_owned();
    }
    let mut broken = String::with_capacity(text.len() * 2);
    for (index, word) in text.split(' ').enumerate() {
        if index > 0 {
            broken.push(' ');
        }
        if self::width(word) <= width {
            broken.push_str(word);
            continue;
        }
        for (index, piece) in word.split_inclusive(['/', '-', '_', '.', '@', ',', ':']).enumerate() {
            if index > 0 {
                broken.push(BREAK);
            }
            if self::width(piece) <= width {
                broken.push_str(piece);
            } else {
                break_anywhere(piece, &mut broken);
            }
        }
    }
    broken
}

fn break_anywhere(piece: &str, broken: &mut String) {
    for (index, char) in piece.chars().enumerate() {
        // A combining mark belongs to the character before it.
        if index > 0 && advance(char) > 0.0 {
            broken.push(BREAK);
        }
        broken.push(char);
    }
}

/// How wide a text is in em, in the bold font: at least as wide as in any other that is used.
pub(super) fn width(text: &str) -> f64 {
    text.chars().map(advance).sum()
}

/// How many lines a text needs at most in a column of `width` em.
pub(super) fn line_count(text: &str, width: f64) -> usize {
    // Ragged lines leave up to a third of their width empty.
    let lines = (self::width(text) / (width * 0.67)).ceil().clamp(1.0, 1e6);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to a small positive number"
    )]
    let lines = lines as usize;
    lines
}

fn advance(char: char) -> f64 {
    let Some(face) = FACES.last() else {
        return 0.6;
    };
    let advance = face.glyph_index(char).and_then(|glyph| face.glyph_hor_advance(glyph)).unwrap_or(0);
    f64::from(advance) / f64::from(face.units_per_em())
}

fn has_glyph(char: char) -> bool {
    FACES.iter().all(|face| face.glyph_index(char).is_some_and(|glyph| glyph.0 != 0))
}

fn replacement() -> char {
    REPLACEMENTS.into_iter().find(|char| has_glyph(*char)).unwrap_or('?')
}

/// Joiners, direction marks and the like. They draw nothing, and direction marks could change how a text reads.
fn is_invisible(char: char) -> bool {
    matches!(char,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Pictographs are left out when they cannot be drawn; letters are replaced by a box.
fn is_pictograph(char: char) -> bool {
    matches!(char, '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}' | '\u{2600}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}'
        | '\u{20e3}' | '\u{1f000}'..='\u{1faff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_without_a_glyph_are_replaced_and_pictures_are_left_out() {
        let replacement = replacement();
        assert_eq!(line("a\u{5e9}b"), format!("a{replacement}b"));
        assert_eq!(line("Party 🎉👨‍👩‍👧 time"), "Party  time");
        assert_eq!(line("a\u{202e}b\u{0}c\td"), "ab c d");
    }

    #[test]
    fn text_that_the_fonts_know_stays_as_it_is() {
        for text in
            ["#let x = $y$ *b* _i_ \\ \" ] [ @a <b> `c` ~ // /* */ = - +", "Crème brûlée €½ Ω Ж ğ ß – “x”"]
        {
            assert_eq!(line(text), text);
        }
    }

    #[test]
    fn only_words_wider_than_the_column_can_break_inside() {
        assert_eq!(breakable("kort genoeg", 5.0), "kort genoeg");
        let broken = breakable(&format!("heel {}", "w".repeat(255)), 20.0);
        assert!(broken.starts_with("heel w\u{200b}w\u{200b}w"));
        assert_eq!(broken.replace(BREAK, "").len(), 260);
    }

    #[test]
    fn metadata_has_no_characters_that_xml_forbids() {
        assert_eq!(metadata("a\u{1}b\u{ffff}c\nd🎉"), "a bc d🎉");
    }
}
