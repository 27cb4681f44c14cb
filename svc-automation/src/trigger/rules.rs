//! What an integration may call its events.

/// Whether a name has only the characters that an event may have: `a-z 0-9 _ . : -`. Its length is the contract's.
pub(crate) fn is_event_name(name: &str) -> bool {
    name.bytes().all(|byte| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'.' | b':' | b'-')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_name_has_small_letters_digits_and_few_signs() {
        assert!(is_event_name("order.shipped:2026_11-14"));
        for wrong in ["Order", "a b", "a/b", "é", "a\n", "a*"] {
            assert!(!is_event_name(wrong), "{wrong:?}");
        }
    }
}
