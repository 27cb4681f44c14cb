//! What makes a ticket valid, its number, and its search text. Pure.

use chassis_base::formats::Form;
use chassis_base::update_mask::UpdateMask;
use proto::api::Fault;
use proto::support::{TicketInput, TicketPatch, TicketPriority};
use proto::{At, Faults};

use super::Values;
use crate::clients::{Client, Lookup};

const FIELDS: [&str; 6] = ["subject", "priority", "client_name", "client_email", "client_id", "status"];

/// Any other text is normal priority.
pub(crate) fn priority(text: &str) -> TicketPriority {
    match text.trim().to_ascii_lowercase().as_str() {
        "low" => TicketPriority::Low,
        "high" => TicketPriority::High,
        "urgent" => TicketPriority::Urgent,
        _ => TicketPriority::Normal,
    }
}

/// The values of a new ticket. A name or address that is not given is copied from the client.
pub(crate) fn create(given: &TicketInput, client: &Lookup, faults: &mut Faults) -> Values {
    let root = At::ROOT;
    let at = root.name("ticket");
    // The general checks accept a request without a ticket, so the subject is checked here.
    if given.subject.is_empty() {
        faults.add(&at.name("subject"), Fault::Required, "subject is required");
    }
    let mut client_email = given.client_email.clone();
    Form::Email.check(&mut client_email, "", &at.name("client_email"), faults);
    let client = found(client, &at, faults);
    let or = |given: String, copied: Option<&String>| {
        if given.is_empty() { copied.cloned().unwrap_or_default() } else { given }
    };
    Values {
        subject: given.subject.clone(),
        priority: priority(&given.priority),
        client_name: or(given.client_name.clone(), client.map(|client| &client.name)),
        client_email: or(client_email, client.map(|client| &client.email)),
        client_id: client.map(|client| client.id),
    }
}

/// The values of a changed ticket: those of `given` that the mask names, and the rest of `current`.
pub(crate) fn patch(
    mask: UpdateMask<'_>,
    given: &TicketPatch,
    current: &Values,
    client: &Lookup,
    faults: &mut Faults,
) -> Values {
    let root = At::ROOT;
    let at = root.name("ticket");
    let mut values = current.clone();
    let mut client_email = given.client_email.clone();
    if mask.has("client_email") {
        Form::Email.check(&mut client_email, "", &at.name("client_email"), faults);
    }
    mask.put("subject", &given.subject, &mut values.subject);
    mask.put("priority", &priority(&given.priority), &mut values.priority);
    let mut client_changed = false;
    if mask.has("client_id") {
        let client = found(client, &at, faults);
        // Mail to another client goes to its own name and address.
        if let Some(client) = client.filter(|client| current.client_id != Some(client.id)) {
            client_changed = true;
            values.client_name.clone_from(&client.name);
            values.client_email.clone_from(&client.email);
        }
        values.client_id = client.map(|client| client.id);
    }
    // Without a mask, an empty text can mean that the caller left the field out. It does not erase what was just copied
    // from another client.
    let is_given = |text: &str| !(client_changed && text.is_empty() && matches!(mask, UpdateMask::All));
    if is_given(&given.client_name) {
        mask.put("client_name", &given.client_name, &mut values.client_name);
    }
    if is_given(&client_email) {
        mask.put("client_email", &client_email, &mut values.client_email);
    }
    values
}

/// Adds a fault for each name of the mask that is not a field.
pub(crate) fn check_mask(mask: UpdateMask<'_>, faults: &mut Faults) {
    mask.check(|name| FIELDS.contains(&name), "ticket", faults);
}

fn found<'a>(client: &'a Lookup, at: &At<'_>, faults: &mut Faults) -> Option<&'a Client> {
    match client {
        Lookup::Found(client) => Some(client),
        Lookup::NotGiven => None,
        Lookup::NotFound => {
            let detail = "client_id must be the id of a client of this account";
            faults.add(&at.name("client_id"), Fault::UnknownReference, detail);
            None
        }
    }
}

/// A status that a caller sets must be active.
pub(crate) fn check_status(status: &str, active: &[String], faults: &mut Faults) {
    if !active.iter().any(|name| name == status) {
        let detail = format!("status must be one of: {}", active.join(", "));
        faults.add(&At::ROOT.name("ticket").name("status"), Fault::NotAllowed, detail);
    }
}

/// The number of the n-th ticket.
pub(crate) fn number(count: i64) -> String {
    format!("T-{count:05}")
}

/// The ticket numbers in a text, without duplicates, the first few only.
pub(crate) fn numbers_in(text: &str) -> Vec<String> {
    const MAX_NUMBERS: usize = 5;
    let mut found: Vec<String> = Vec::new();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    for word in words.filter_map(|word| word.strip_prefix("T-").or_else(|| word.strip_prefix("t-"))) {
        let is_number = (5..=18).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit());
        let number = format!("T-{word}");
        if is_number && !found.contains(&number) && found.len() < MAX_NUMBERS {
            found.push(number);
        }
    }
    found
}

/// The text that a search looks through, in lower case. Line breaks keep a search term from matching across two fields.
pub(crate) fn search_text(number: &str, values: &Values) -> String {
    let Values { subject, client_name, client_email, .. } = values;
    format!("{number}\n{subject}\n{client_name}\n{client_email}").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn ann() -> Lookup {
        Lookup::Found(Client { id: Uuid::from_u128(1), name: "Ann".into(), email: "ann@b.nl".into() })
    }

    #[test]
    fn any_other_priority_is_normal() {
        assert_eq!(priority("URGENT"), TicketPriority::Urgent);
        for text in ["", "normal", "critical", "é"] {
            assert_eq!(priority(text), TicketPriority::Normal, "{text}");
        }
    }

    #[test]
    fn name_and_address_come_from_the_client_unless_given() {
        let mut faults = Faults::default();
        let given = TicketInput { subject: "A".into(), client_name: "Bob".into(), ..TicketInput::default() };
        let values = create(&given, &ann(), &mut faults);
        assert_eq!((values.client_name.as_str(), values.client_email.as_str()), ("Bob", "ann@b.nl"));
        assert_eq!(values.client_id, Some(Uuid::from_u128(1)));
        assert!(faults.is_empty());
    }

    #[test]
    fn every_fault_is_reported() {
        let mut faults = Faults::default();
        let given = TicketInput { client_email: "no".into(), ..TicketInput::default() };
        create(&given, &Lookup::NotFound, &mut faults);
        let positions: Vec<_> = faults.entries().iter().map(|entry| entry.pointer.as_str()).collect();
        assert_eq!(positions, ["/ticket/subject", "/ticket/client_email", "/ticket/client_id"]);
    }

    #[test]
    fn only_fields_in_the_mask_change() {
        let current = create(
            &TicketInput { subject: "A".into(), ..TicketInput::default() },
            &ann(),
            &mut Faults::default(),
        );
        let given = TicketPatch { subject: "B".into(), client_email: "no".into(), ..TicketPatch::default() };
        let mut faults = Faults::default();
        let paths = ["subject".to_owned()];
        let values = patch(UpdateMask::Only(&paths), &given, &current, &Lookup::NotGiven, &mut faults);
        assert!(faults.is_empty());
        assert_eq!(values, Values { subject: "B".into(), ..current.clone() });
        let paths = ["client_id".to_owned()];
        let values = patch(UpdateMask::Only(&paths), &given, &current, &Lookup::NotGiven, &mut faults);
        assert_eq!(values, Values { client_id: None, ..current });
    }

    #[test]
    fn another_client_brings_its_own_name_and_address() {
        let ticket = TicketInput { subject: "A".into(), client_name: "Bob".into(), ..TicketInput::default() };
        let ticket = TicketInput { client_email: "bob@b.nl".into(), ..ticket };
        let current = create(&ticket, &Lookup::NotGiven, &mut Faults::default());
        let changed = |paths: &[&str], given: &TicketPatch| {
            let paths: Vec<String> = paths.iter().map(ToString::to_string).collect();
            let values = patch(UpdateMask::Only(&paths), given, &current, &ann(), &mut Faults::default());
            (values.client_name, values.client_email)
        };
        let none = TicketPatch::default();
        assert_eq!(changed(&["client_id"], &none), ("Ann".into(), "ann@b.nl".into()));
        let desk = TicketPatch { client_email: "desk@b.nl".into(), ..none };
        assert_eq!(changed(&["client_id", "client_email"], &desk), ("Ann".into(), "desk@b.nl".into()));
        let whole = patch(UpdateMask::All, &desk, &current, &ann(), &mut Faults::default());
        assert_eq!((whole.client_name.as_str(), whole.client_email.as_str()), ("Ann", "desk@b.nl"));
        let ours = Values { client_id: Some(Uuid::from_u128(1)), ..current.clone() };
        let paths = ["client_id".to_owned()];
        let same = patch(UpdateMask::Only(&paths), &desk, &ours, &ann(), &mut Faults::default());
        assert_eq!(same, ours, "the same client changes nothing");
    }

    #[test]
    fn numbers_are_found_as_whole_words() {
        assert_eq!(numbers_in("Re: [T-00042] Bread (t-00043), T-00042"), ["T-00042", "T-00043"]);
        for text in ["T-42", "XT-00042", "T-00042x", "T-0004é2", "INV-2026-00001", ""] {
            assert_eq!(numbers_in(text), [""; 0], "{text}");
        }
        assert_eq!(numbers_in(&"T-00001 T-00002 T-00003 T-00004 T-00005 T-00006".repeat(9)).len(), 5);
        assert_eq!(numbers_in(&number(1_234_567)), ["T-1234567"]);
    }
}
