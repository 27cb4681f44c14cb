//! Text from elsewhere (errors of peers and receivers, names of people) in a form that can be stored. Pure.

/// The longest text that is stored, in characters.
const MAX_STORED: usize = 1000;

/// The text without NUL, which Postgres cannot store, and cut to [`MAX_STORED`].
pub(crate) fn storable(text: &str) -> String {
    text.chars().filter(|character| *character != '\0').take(MAX_STORED).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_can_be_stored_whatever_it_says() {
        let text = storable(&("a\0b".to_owned() + &"é".repeat(5000)));
        assert!(text.starts_with("ab") && text.chars().count() == MAX_STORED);
    }
}
