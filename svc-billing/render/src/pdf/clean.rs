//! Prepares texts of any origin for the page: only characters that some font can draw. Nothing here is ever read as markup.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::typeset::fonts::{has_glyph, is_embedded};

/// Replacements for a character that no font has, in order of preference.
const REPLACEMENTS: [char; 3] = ['\u{25a1}', '\u{fffd}', '?'];

/// Which fonts may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fonts {
    All,
    /// Only those that are part of the program.
    Embedded,
}

/// Cleans the texts of one document, and remembers what no font has.
pub(super) struct Cleaner {
    fonts: Fonts,
    missing: RefCell<BTreeSet<char>>,
}

impl Cleaner {
    pub(super) fn new(fonts: Fonts) -> Self {
        Self { fonts, missing: RefCell::default() }
    }

    /// The letters that are shown as a box.
    pub(super) fn into_missing(self) -> BTreeSet<char> {
        self.missing.into_inner()
    }

    /// One line of text: line ends and tabs become spaces.
    pub(super) fn line(&self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len());
        for char in text.trim().chars() {
            match char {
                ' '..='~' => clean.push(char),
                char if char.is_control() || char == '\u{2028}' || char == '\u{2029}' => clean.push(' '),
                // Arabic and Indic scripts need them between letters.
                '\u{200c}' | '\u{200d}' if self.fonts == Fonts::All => clean.push(char),
                char if is_invisible(char) || (is_pictograph(char) && !self.has_glyph(char)) => {}
                char if self.has_glyph(char) => clean.push(char),
                char if char.is_whitespace() => clean.push(' '),
                char => {
                    self.missing.borrow_mut().insert(char);
                    clean.push(replacement());
                }
            }
        }
        clean.trim().to_owned()
    }

    /// Text of several lines, as its writer broke them; empty lines at both ends are left out.
    pub(super) fn lines(&self, text: &str) -> Vec<String> {
        text.trim().lines().map(|line| self.line(line)).collect()
    }

    fn has_glyph(&self, char: char) -> bool {
        match self.fonts {
            Fonts::All => has_glyph(char),
            Fonts::Embedded => is_embedded(char),
        }
    }
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

fn replacement() -> char {
    REPLACEMENTS.into_iter().find(|char| is_embedded(*char)).unwrap_or('?')
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

    fn line(text: &str) -> String {
        Cleaner::new(Fonts::Embedded).line(text)
    }

    #[test]
    fn letters_without_a_glyph_are_replaced_and_told_and_pictures_are_left_out() {
        let cleaner = Cleaner::new(Fonts::Embedded);
        assert_eq!(cleaner.line("a\u{5e9}b"), format!("a{}b", replacement()));
        assert_eq!(cleaner.line("Party 🎉👨‍👩‍👧 time"), "Party  time");
        assert_eq!(cleaner.into_missing(), BTreeSet::from(['\u{5e9}']));
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
    fn metadata_has_no_characters_that_xml_forbids() {
        assert_eq!(metadata("a\u{1}b\u{ffff}c\nd🎉"), "a bc d🎉");
    }
}
