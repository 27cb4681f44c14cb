//! A mail as a service puts it together.

use chassis_base::{Account, Error};
use lettre::Address;
use lettre::message::Mailbox;
use proto::api::Fault;
use proto::{At, Faults};

/// A mail to be sent. Addresses have been parsed: see [`mailbox`] and [`Mailer::sender`](super::Mailer::sender).
#[derive(Clone, Debug)]
pub struct Mail {
    pub from: Mailbox,
    pub to: Vec<Mailbox>,
    pub cc: Vec<Mailbox>,
    pub reply_to: Option<Mailbox>,
    pub subject: String,
    /// One of `text` and `html`, or both.
    pub text: Option<String>,
    pub html: Option<String>,
    pub attachments: Vec<Attachment>,
    /// Further headers; their names are ours, their values may be anything.
    pub headers: Vec<(&'static str, String)>,
    /// What the mail is about, for example a kind and an id: for those who look at the queue, and for [`outcomes`](super::outcomes).
    pub reference: String,
}

#[derive(Clone, Debug)]
pub enum Attachment {
    /// Kept with the mail.
    Inline(Attached),
    /// Had from the service's [`AttachmentSource`] when the mail is delivered; for example `letter-pdf:<id>`.
    Later { reference: String },
}

/// An attachment with its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    pub name: String,
    /// For example `application/pdf`.
    pub content_type: String,
    pub bytes: Vec<u8>,
}

/// Makes or fetches attachments when a mail is delivered. Each attempt asks again, outside any transaction.
#[tonic::async_trait]
pub trait AttachmentSource: Send + Sync {
    /// `None`: it is gone for good, and the mail cannot be delivered. An error: to be tried again later.
    async fn load(&self, account: &Account, reference: &str) -> Result<Option<Attached>, Error>;
}

impl Mail {
    /// A mail with nothing in it yet.
    pub fn new(from: Mailbox, to: Vec<Mailbox>, subject: impl Into<String>) -> Self {
        Self {
            from,
            to,
            cc: Vec::new(),
            reply_to: None,
            subject: subject.into(),
            text: None,
            html: None,
            attachments: Vec::new(),
            headers: Vec::new(),
            reference: String::new(),
        }
    }

    /// Each address once, in the order of the headers.
    pub(super) fn recipients(&self) -> Vec<String> {
        let mut recipients: Vec<String> = Vec::new();
        for address in self.to.iter().chain(&self.cc).map(|mailbox| mailbox.email.to_string()) {
            if !recipients.contains(&address) {
                recipients.push(address);
            }
        }
        recipients
    }
}

/// An address with the name to show, if it is one. Input is checked with this, so that queueing cannot fail on it.
pub fn mailbox(name: &str, address: &str) -> Option<Mailbox> {
    let address: Address = address.trim().parse().ok().filter(|_| address.len() <= 254)?;
    let name = one_line(name);
    Some(Mailbox::new(Some(name).filter(|name| !name.is_empty()), address))
}

/// The addresses of a text, comma-separated. A fault names the bad one.
pub fn read_addresses(text: &str, at: &At<'_>, faults: &mut Faults) -> Vec<Mailbox> {
    let label = at.label();
    let parts: Vec<&str> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() && !text.is_empty() {
        faults.add(at, Fault::Required, format!("{label} has no address"));
    }
    let mut found = Vec::new();
    for part in parts {
        let address = chassis_base::formats::email::normalise(part);
        if let Some(one) = address.and_then(|address| mailbox("", &address)) {
            found.push(one);
        } else {
            let detail = format!("{label} must be e-mail addresses separated by commas; {part:?} is none");
            faults.add(at, Fault::BadEmail, detail);
        }
    }
    found
}

/// Characters of a header's value, and of a word in it: a line cannot be broken inside a word, and has at most 998.
const MAX_LENGTH: usize = 10_000;
const MAX_WORD: usize = 200;

/// Text of others as a header may have it: no control characters or line separators, single blanks, and nothing that a
/// reader would take for an encoded word.
pub(super) fn one_line(text: &str) -> String {
    let is_break = |letter: char| letter.is_control() || matches!(letter, ' ' | '\u{2028}' | '\u{2029}');
    let text: String = text.chars().take(MAX_LENGTH).collect();
    let text = text.replace("=?", "= ?");
    let mut line = String::new();
    for word in text.split(is_break).filter(|word| !word.is_empty()) {
        for (place, letter) in word.chars().enumerate() {
            if place % MAX_WORD == 0 && !line.is_empty() {
                line.push(' ');
            }
            line.push(letter);
        }
    }
    line
}
