//! What makes a ticket valid, how it is called, and what finds it. Pure.

use chassis::formats::Form;
use chassis::mask::Named;
use proto::api::Fault;
use proto::support::{TicketInput, TicketPatch, TicketPriority};
use proto::{At, Faults};

use super::Values;
use crate::clients::{self, Client};

const FIELDS: [&str; 6] = ["subject", "priority", "client_name", "client_email", "client_id", "status"];

/// What is not known is normal.
pub fn priority(text: &str) -> TicketPriority {
    match text.trim().to_ascii_lowercase().as_str() {
        "low" => TicketPriority::Low,
        "high" => TicketPriority::High,
        "urgent" => TicketPriority::Urgent,
        _ => TicketPriority::Normal,
    }
}

/// The values of a new ticket. Name and address of its client are taken over where none are given.
pub fn create(given: &TicketInput, client: &clients::Named, faults: &mut Faults) -> Values {
    let root = At::ROOT;
    let at = root.name("ticket");
    // Also when the whole ticket is missing, which the general checks let pass.
    if given.subject.is_empty() {
        faults.add(&at.name("subject"), Fault::Required, "subject is required");
    }
    let mut client_email = given.client_email.clone();
    Form::Email.check(&mut client_email, "", &at.name("client_email"), faults);
    let client = found(client, &at, faults);
    let or = |given: String, known: Option<&String>| {
        if given.is_empty() { known.cloned().unwrap_or_default() } else { given }
    };
    Values {
        subject: given.subject.clone(),
        priority: priority(&given.priority),
        client_name: or(given.client_name.clone(), client.map(|client| &client.name)),
        client_email: or(client_email, client.map(|client| &client.email)),
        client_id: client.map(|client| client.id),
    }
}

/// The values that a changed ticket will have: the named ones of `given`, the others of `current`.
pub fn patch(
    named: Named<'_>,
    given: &TicketPatch,
    current: &Values,
    client: &clients::Named,
    faults: &mut Faults,
) -> Values {
    let root = At::ROOT;
    let at = root.name("ticket");
    let mut values = current.clone();
    let mut client_email = given.client_email.clone();
    if named.has("client_email") {
        Form::Email.check(&mut client_email, "", &at.name("client_email"), faults);
    }
    named.put("subject", &given.subject, &mut values.subject);
    named.put("priority", &priority(&given.priority), &mut values.priority);
    let mut is_another = false;
    if named.has("client_id") {
        let client = found(client, &at, faults);
        // Another client is written to under its own name and address.
        if let Some(client) = client.filter(|client| current.client_id != Some(client.id)) {
            is_another = true;
            values.client_name.clone_from(&client.name);
            values.client_email.clone_from(&client.email);
        }
        values.client_id = client.map(|client| client.id);
    }
    // Without a mask, nothing is not a name.
    let is_meant = |text: &str| !(is_another && text.is_empty() && matches!(named, Named::All));
    if is_meant(&given.client_name) {
        named.put("client_name", &given.client_name, &mut values.client_name);
    }
    if is_meant(&client_email) {
        named.put("client_email", &client_email, &mut values.client_email);
    }
    values
}

/// What does not depend on the ticket that is changed.
pub fn check_mask(named: Named<'_>, faults: &mut Faults) {
    named.check(|name| FIELDS.contains(&name), "ticket", faults);
}

fn found<'a>(client: &'a clients::Named, at: &At<'_>, faults: &mut Faults) -> Option<&'a Client> {
    match client {
        clients::Named::Found(client) => Some(client),
        clients::Named::Nobody => None,
        clients::Named::Unknown => {
            let detail = "client_id must be the id of a client of this account";
            faults.add(&at.name("client_id"), Fault::UnknownReference, detail);
            None
        }
    }
}

/// A status that a caller sets must be one that the account uses.
pub fn check_status(status: &str, active: &[String], faults: &mut Faults) {
    if !active.iter().any(|name| name == status) {
        let detail = format!("status must be one of: {}", active.join(", "));
        faults.add(&At::ROOT.name("ticket").name("status"), Fault::NotAllowed, detail);
    }
}

/// How the n-th ticket is called.
pub fn number(count: i64) -> String {
    format!("T-{count:05}")
}

/// The ticket numbers that a text mentions, each once, at most a few.
pub fn numbers_in(text: &str) -> Vec<String> {
    const MOST: usize = 5;
    let mut found: Vec<String> = Vec::new();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    for word in words.filter_map(|word| word.strip_prefix("T-").or_else(|| word.strip_prefix("t-"))) {
        let is_number = (5..=18).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit());
        let number = format!("T-{word}");
        if is_number && !found.contains(&number) && found.len() < MOST {
            found.push(number);
        }
    }
    found
}

/// What a search looks through, in lower case. The line breaks keep it from matching across fields.
pub fn search_text(number: &str, values: &Values) -> String {
    let Values { subject, client_name, client_email, .. } = values;
    format!("{number}\n{subject}\n{client_name}\n{client_email}").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn ann() -> clients::Named {
        clients::Named::Found(Client { id: Uuid::from_u128(1), name: "Ann".into(), email: "ann@b.nl".into() })
    }

    #[test]
    fn an_unknown_priority_is_normal() {
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
    fn every_fault_is_told_at_once() {
        let mut faults = Faults::default();
        let given = TicketInput { client_email: "no".into(), ..TicketInput::default() };
        create(&given, &clients::Named::Unknown, &mut faults);
        let places: Vec<_> = faults.entries().iter().map(|entry| entry.pointer.as_str()).collect();
        assert_eq!(places, ["/ticket/subject", "/ticket/client_email", "/ticket/client_id"]);
    }

    #[test]
    fn only_what_is_named_changes() {
        let current = create(
            &TicketInput { subject: "A".into(), ..TicketInput::default() },
            &ann(),
            &mut Faults::default(),
        );
        let given = TicketPatch { subject: "B".into(), client_email: "no".into(), ..TicketPatch::default() };
        let mut faults = Faults::default();
        let paths = ["subject".to_owned()];
        let values = patch(Named::Only(&paths), &given, &current, &clients::Named::Nobody, &mut faults);
        assert!(faults.is_empty());
        assert_eq!(values, Values { subject: "B".into(), ..current.clone() });
        let paths = ["client_id".to_owned()];
        let values = patch(Named::Only(&paths), &given, &current, &clients::Named::Nobody, &mut faults);
        assert_eq!(values, Values { client_id: None, ..current });
    }

    #[test]
    fn another_client_brings_its_own_name_and_address() {
        let ticket = TicketInput { subject: "A".into(), client_name: "Bob".into(), ..TicketInput::default() };
        let ticket = TicketInput { client_email: "bob@b.nl".into(), ..ticket };
        let current = create(&ticket, &clients::Named::Nobody, &mut Faults::default());
        let changed = |paths: &[&str], given: &TicketPatch| {
            let paths: Vec<String> = paths.iter().map(ToString::to_string).collect();
            let values = patch(Named::Only(&paths), given, &current, &ann(), &mut Faults::default());
            (values.client_name, values.client_email)
        };
        let none = TicketPatch::default();
        assert_eq!(changed(&["client_id"], &none), ("Ann".into(), "ann@b.nl".into()));
        let desk = TicketPatch { client_email: "desk@b.nl".into(), ..none };
        assert_eq!(changed(&["client_id", "client_email"], &desk), ("Ann".into(), "desk@b.nl".into()));
        let whole = patch(Named::All, &desk, &current, &ann(), &mut Faults::default());
        assert_eq!((whole.client_name.as_str(), whole.client_email.as_str()), ("Ann", "desk@b.nl"));
        let ours = Values { client_id: Some(Uuid::from_u128(1)), ..current.clone() };
        let paths = ["client_id".to_owned()];
        let same = patch(Named::Only(&paths), &desk, &ours, &ann(), &mut Faults::default());
        assert_eq!(same, ours, "the same client changes nothing");
    }

    #[test]
    fn numbers_are_found_where_they_stand_alone() {
        assert_eq!(numbers_in("Re: [T-00042] Bread (t-00043), T-00042"), ["T-00042", "T-00043"]);
        for text in ["T-42", "XT-00042", "T-00042x", "T-0004é2", "INV-2026-00001", ""] {
            assert_eq!(numbers_in(text), [""; 0], "{text}");
        }
        assert_eq!(numbers_in(&"T-00001 T-00002 T-00003 T-00004 T-00005 T-00006".repeat(9)).len(), 5);
        assert_eq!(numbers_in(&number(1_234_567)), ["T-1234567"]);
    }
}
