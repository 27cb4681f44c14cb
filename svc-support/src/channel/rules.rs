//! What makes a channel valid. Pure.

use chassis_base::formats::{Form, email};
use proto::api::Fault;
use proto::support::TicketChannelInput;
use proto::{At, Faults};

use super::Values;

/// The values of a channel, its addresses checked.
pub(super) fn read(given: &TicketChannelInput, faults: &mut Faults) -> Values {
    let root = At::ROOT;
    let at = root.name("channel");
    let mut address = |field: &'static str, text: &str| {
        let mut value = text.to_ascii_lowercase();
        Form::Email.check(&mut value, "", &at.name(field), faults);
        value
    };
    let own = address("email", &given.email);
    let from_email = address("from_email", &given.from_email);
    let list = at.name("forwarding_emails");
    let mut forwarding_emails: Vec<String> = Vec::new();
    for (index, text) in given.forwarding_emails.iter().enumerate() {
        match email::normalise(&text.to_ascii_lowercase()) {
            Some(address) if forwarding_emails.contains(&address) => {
                faults.add(&list.index(index), Fault::Repeated, "an address must be there only once");
            }
            Some(address) => forwarding_emails.push(address),
            None => faults.add(&list.index(index), Fault::BadEmail, "must be an e-mail address"),
        }
    }
    Values {
        name: given.name.clone(),
        email: own,
        from_email,
        from_name: given.from_name.clone(),
        forwarding_emails,
        active: given.active.unwrap_or(true),
        position: given.order,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_and_kept_in_lower_case() {
        let mut faults = Faults::default();
        let given = TicketChannelInput {
            name: "Support".into(),
            email: "Support@Bakery.example".into(),
            forwarding_emails: vec!["INFO@bakery.example".into()],
            ..TicketChannelInput::default()
        };
        let values = read(&given, &mut faults);
        assert!(faults.is_empty());
        assert_eq!(values.email, "support@bakery.example");
        assert_eq!(values.forwarding_emails, ["info@bakery.example"]);
        assert!(values.active);
    }

    #[test]
    fn every_bad_address_is_named() {
        let mut faults = Faults::default();
        let given = TicketChannelInput {
            name: "Support".into(),
            email: "no".into(),
            from_email: "nor@this".into(),
            forwarding_emails: vec!["a@b.nl".into(), "x".into(), "A@b.nl".into()],
            ..TicketChannelInput::default()
        };
        read(&given, &mut faults);
        let found: Vec<_> = faults.entries().iter().map(|entry| entry.pointer.as_str()).collect();
        let list = "/channel/forwarding_emails";
        assert_eq!(
            found,
            ["/channel/email", "/channel/from_email", &format!("{list}/1"), &format!("{list}/2")]
        );
    }
}
