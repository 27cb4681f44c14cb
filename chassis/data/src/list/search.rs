//! Search terms as SQL: literal substrings, and whether an index can find them.

/// A `like` pattern that matches a substring literally; wildcards in the term are escaped.
pub(super) fn substring_pattern(term: &str) -> String {
    let mut pattern = String::with_capacity(term.len() + 2);
    pattern.push('%');
    for character in term.chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}

/// Whether a search term has three letters or digits in a row, which a trigram index needs for a lookup.
pub(super) fn has_trigram(term: &str) -> bool {
    term.split(|c: char| !c.is_alphanumeric()).any(|run| run.chars().nth(2).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_in_a_search_are_plain_text() {
        assert_eq!(substring_pattern("50%_A\\"), "%50\\%\\_A\\\\%");
    }

    #[test]
    fn a_trigram_needs_three_letters_or_digits_in_a_row() {
        for with in ["abc", "d-00001", "a bcd", "été"] {
            assert!(has_trigram(with), "{with}");
        }
        for without in ["", "ab", "d-1", "a b c", "%%%%", "é_é"] {
            assert!(!has_trigram(without), "{without}");
        }
    }
}
