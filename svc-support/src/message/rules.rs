//! What makes a message of ours valid. Pure.

use chassis_base::formats::Form;
use chassis_work::mail::{self, Mailbox};
use proto::api::Fault;
use proto::support::{TicketMessageInput, TicketMessageType};
use proto::{At, Faults};

/// The number of recipients of a message, `to` and `cc` together.
const MAX_RECIPIENTS: usize = 20;

/// The fields of a request that need checking, checked.
pub(super) struct Checked {
    pub note: bool,
    pub to: Vec<Mailbox>,
    pub cc: Vec<Mailbox>,
    pub author_email: String,
}

pub(super) fn check(given: &TicketMessageInput, faults: &mut Faults) -> Checked {
    let root = At::ROOT;
    let at = root.name("message");
    let has_fault = ["body", "html"].iter().any(|field| faults.cover(&at.name(field)));
    if given.body.trim().is_empty() && given.html.trim().is_empty() && !has_fault {
        faults.add(&at.name("body"), Fault::Required, "body or html is required");
    }
    let mut author_email = given.author_email.clone();
    Form::Email.check(&mut author_email, "", &at.name("author_email"), faults);
    let to = mail::read_addresses(&given.to, &at.name("to"), faults);
    let cc = mail::read_addresses(&given.cc, &at.name("cc"), faults);
    if to.len() + cc.len() > MAX_RECIPIENTS {
        let detail = format!("to and cc can have {MAX_RECIPIENTS} addresses together");
        faults.add(&at.name(if to.len() > MAX_RECIPIENTS { "to" } else { "cc" }), Fault::TooMany, detail);
    }
    Checked { note: given.r#type() == TicketMessageType::Note, to, cc, author_email }
}

/// The addresses of mailboxes in lower case, as they are stored and compared.
pub(super) fn addresses(mailboxes: &[Mailbox]) -> Vec<String> {
    mailboxes.iter().map(|mailbox| mailbox.email.to_string().to_lowercase()).collect()
}
