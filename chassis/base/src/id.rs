//! Parses ids that callers send.

use proto::Faults;
use proto::api::CarriedFaults;
use uuid::Uuid;

/// The length of a UUID in the hyphenated form.
const LENGTH: usize = 36;

/// Returns `None` if the text is not a hyphenated UUID; then no record has this id.
pub fn parse(text: &str) -> Option<Uuid> {
    if text.len() == LENGTH { Uuid::try_parse(text).ok() } else { None }
}

/// The id that a list is restricted to; `None` when it is not. A text that is not an id becomes the nil id, which no
/// record has, so that the list is empty.
pub fn filter(text: &str) -> Option<Uuid> {
    (!text.is_empty()).then(|| parse(text).unwrap_or_default())
}

/// Removes faults about the format of the id in a path: a malformed id means not found and is not a validation fault.
pub fn ignore_malformed(faults: &mut Faults) {
    if faults.entries().iter().any(|entry| entry.pointer == "/id") {
        let mut entries = std::mem::take(faults).into_entries();
        entries.retain(|entry| entry.pointer != "/id");
        *faults = CarriedFaults { faults: entries }.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::At;
    use proto::api::Fault;

    #[test]
    fn only_the_usual_form_is_an_id() {
        let id = "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05";
        assert_eq!(parse(id).map(|id| id.to_string()).as_deref(), Some(id));
        let braced = format!("{{{id}}}");
        for odd in ["", "x", "019a8c5e7d1b7c3a9f204b8d2a6e1c05", &braced, &"é".repeat(18)] {
            assert_eq!(parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn an_empty_text_restricts_no_list_and_a_text_that_is_not_an_id_matches_nothing() {
        let id = "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05";
        assert_eq!(filter(""), None);
        assert_eq!(filter("x"), Some(Uuid::nil()));
        assert_eq!(filter(id).map(|id| id.to_string()).as_deref(), Some(id));
    }

    #[test]
    fn only_faults_of_the_id_are_forgiven() {
        let mut faults = Faults::default();
        faults.add(&At::ROOT.name("id"), Fault::TooLong, "long");
        faults.add(&At::ROOT.name("idle"), Fault::TooLong, "long");
        ignore_malformed(&mut faults);
        assert_eq!(faults.entries().iter().map(|e| e.pointer.as_str()).collect::<Vec<_>>(), ["/idle"]);
    }
}
