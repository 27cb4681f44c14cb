//! Where a text is written, which decides about the forms of Chinese, Japanese and Korean characters.

use unicode_script::{Script, UnicodeScript as _};

/// Where a text is written. Chinese, Japanese and Korean fonts draw the same character in different forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Region {
    #[default]
    China,
    HongKong,
    Taiwan,
    Japan,
    Korea,
}

impl Region {
    /// By the country of the reader.
    pub(crate) fn of_country(code: &str) -> Self {
        match code.trim() {
            "HK" | "MO" => Self::HongKong,
            "TW" => Self::Taiwan,
            "JP" => Self::Japan,
            "KR" | "KP" => Self::Korea,
            _ => Self::China,
        }
    }

    /// Kana and hangul tell more of a text than where its reader lives.
    pub(super) fn of_text(self, text: &str) -> Self {
        let of = |char: char| match char.script() {
            Script::Hiragana | Script::Katakana => Some(Self::Japan),
            Script::Hangul => Some(Self::Korea),
            _ => None,
        };
        if text.is_ascii() { self } else { text.chars().find_map(of).unwrap_or(self) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_kana_is_japanese_wherever_its_reader_lives() {
        let reader = Region::of_country("TW");
        assert_eq!(reader, Region::Taiwan);
        assert_eq!(reader.of_text("東京"), Region::Taiwan);
        assert_eq!(reader.of_text("東京タワー"), Region::Japan);
        assert_eq!(reader.of_text("서울"), Region::Korea);
    }
}
