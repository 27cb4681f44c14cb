//! Filters of lists, as requests write them.

use uuid::Uuid;

/// The id that a list is restricted to; `None` when it is not. A text that is not an id becomes the nil id, which no
/// record has, so that the list is empty.
pub(crate) fn id(text: &str) -> Option<Uuid> {
    (!text.is_empty()).then(|| chassis_base::id::parse(text).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_text_restricts_nothing_and_a_text_that_is_not_an_id_matches_nothing() {
        let text = "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05";
        assert_eq!(id(""), None);
        assert_eq!(id("x"), Some(Uuid::nil()));
        assert_eq!(id(text).map(|id| id.to_string()).as_deref(), Some(text));
    }
}
