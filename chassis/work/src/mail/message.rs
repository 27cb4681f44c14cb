//! A mail as a service creates it.

use chassis_base::{Account, Error};
use lettre::Address;
use lettre::message::Mailbox;
use proto::api::Fault;
use proto::{At, Faults};
use uuid::Uuid;

/// A mail to be sent. Addresses have been parsed: see [`mailbox`] and [`Mailer::sender`](super::Mailer::sender).
#[derive(Clone, Debug)]
pub struct Mail {
    pub from: Mailbox,
    pub to: Vec<Mailbox>,
    pub cc: Vec<Mailbox>,
    pub reply_to: Option<Mailbox>,
    pub subject: String,
    /// At least one of `text` and `html` is set.
    pub text: Option<String>,
    pub html: Option<String>,
    pub attachments: Vec<Attachment>,
    /// Further headers. Names are fixed in the program; values may be any text.
    pub headers: Vec<(&'static str, String)>,
    /// What the mail is about, for example a kind and an id. Shown to operators and used by
    /// [`outcomes`](super::outcomes).
    pub reference: String,
}

#[derive(Clone, Debug)]
pub enum Attachment {
    /// Stored with the mail.
    Inline(Attached),
    /// Loaded from the service's [`AttachmentSource`] at delivery, for example `document-pdf:<id>`.
    Later { reference: String },
    /// A file of the account, read at delivery. If it was deleted by then, the mail goes without it.
    File { id: Uuid, size: u64 },
}

/// A file of the account that a mail brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedFile {
    pub id: Uuid,
    pub name: String,
    pub content_type: String,
    /// In bytes.
    pub size: u64,
}

impl From<&AttachedFile> for Attachment {
    fn from(file: &AttachedFile) -> Self {
        Self::File { id: file.id, size: file.size }
    }
}

/// An attachment with its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attached {
    pub name: String,
    /// For example `application/pdf`.
    pub content_type: String,
    pub bytes: Vec<u8>,
}

/// Creates or fetches attachments when a mail is delivered. Each attempt calls it again, outside any transaction.
#[tonic::async_trait]
pub trait AttachmentSource: Send + Sync {
    /// `None` means that it no longer exists and the mail cannot be delivered. An error is retried later.
    async fn load(&self, account: &Account, reference: &str) -> Result<Option<Attached>, Error>;
}

impl Mail {
    /// A mail without content.
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

/// Parses an address and gives it a display name; `None` if it is invalid. Services check input with this, so that
/// queueing cannot fail on it.
pub fn mailbox(name: &str, address: &str) -> Option<Mailbox> {
    let address: Address = address.trim().parse().ok().filter(|_| address.len() <= 254)?;
    let name = one_line(name);
    Some(Mailbox::new(Some(name).filter(|name| !name.is_empty()), address))
}

/// Parses comma-separated addresses. Each invalid address adds a fault.
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

/// Characters of a header's value, and of a word in it. Lines break between words only and have at most 998 characters.
const MAX_LENGTH: usize = 10_000;
const MAX_WORD: usize = 200;

/// Makes untrusted text safe for a header: no control characters or line separators, single blanks, and nothing that a
/// mail reader would decode as an encoded word.
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
