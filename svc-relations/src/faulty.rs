//! Which places of a request already have a fault.

use proto::{At, Faults};

/// Whether there is a fault at this place or around it: then nothing more can be said about what is there.
pub fn is_faulty(faults: &Faults, at: &At<'_>) -> bool {
    let pointer = at.pointer();
    faults.entries().iter().any(|entry| {
        pointer
            .strip_prefix(entry.pointer.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::api::Fault;

    #[test]
    fn a_fault_covers_its_place_and_what_is_inside() {
        let mut faults = Faults::default();
        let client = At::ROOT.name("client");
        faults.add(&client.name("email"), Fault::NotAString, "text");
        let other = At::ROOT.name("other");
        faults.add(&other, Fault::NotAnObject, "no object");
        assert!(is_faulty(&faults, &client.name("email")));
        assert!(is_faulty(&faults, &other.name("email")));
        assert!(!is_faulty(&faults, &client) && !is_faulty(&faults, &client.name("email_invoices")));
    }
}
