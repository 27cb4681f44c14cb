//! Which clients can be linked. Pure.

use proto::api::Fault;
use proto::relations::RelationType;
use proto::{At, Faults};

/// A link needs the id of its person.
pub(super) fn check_given(client_id: &str, faults: &mut Faults) {
    let link = At::ROOT.name("link");
    let at = link.name("client_id");
    if client_id.trim().is_empty() && !faults.cover(&at) {
        faults.add(&at, Fault::Required, "client_id is required");
    }
}

/// The company of a link must be a company, and its person must exist and be a person.
pub(super) fn check_types(company: RelationType, person: Option<RelationType>, faults: &mut Faults) {
    if company != RelationType::Company {
        let detail = "persons are linked to a client of type company; this one is private";
        faults.add(&At::ROOT.name("id"), Fault::WrongKind, detail);
    }
    let link = At::ROOT.name("link");
    let at = link.name("client_id");
    let (fault, detail) = match person {
        Some(RelationType::Private) => return,
        Some(_) => (Fault::WrongKind, "client_id must be a client of type private; this one is a company"),
        None => (Fault::UnknownReference, "client_id must be the id of a client of this account"),
    };
    if !faults.cover(&at) {
        faults.add(&at, fault, detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RelationType::{Company, Private};

    fn faults(company: RelationType, person: Option<RelationType>) -> Vec<(String, Fault)> {
        let mut faults = Faults::default();
        check_types(company, person, &mut faults);
        faults.entries().iter().map(|entry| (entry.pointer.clone(), entry.code())).collect()
    }

    #[test]
    fn only_a_person_is_linked_and_only_to_a_company() {
        let at = |pointer: &str, fault| (pointer.to_owned(), fault);
        assert_eq!(faults(Company, Some(Private)), []);
        assert_eq!(faults(Company, Some(Company)), [at("/link/client_id", Fault::WrongKind)]);
        assert_eq!(faults(Company, None), [at("/link/client_id", Fault::UnknownReference)]);
        let both = [at("/id", Fault::WrongKind), at("/link/client_id", Fault::WrongKind)];
        assert_eq!(faults(Private, Some(Company)), both);
    }

    #[test]
    fn a_link_that_cannot_be_read_has_no_other_fault() {
        let mut faults = Faults::default();
        faults.add(&At::ROOT.name("link"), Fault::NotAnObject, "carried");
        check_given("", &mut faults);
        check_types(Company, None, &mut faults);
        assert_eq!(faults.len(), 1);
    }
}
