//! The stored form of a queued mail, a protobuf message: compact with attachments, and a later version of the program
//! can read what an earlier version wrote. Field numbers are never reused.

use lettre::message::Mailbox;

use super::account_files::FileReference;
use super::message::{Attached, Attachment, Mail, one_line};

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Stored {
    #[prost(message, optional, tag = "1")]
    pub from: Option<Person>,
    #[prost(message, repeated, tag = "2")]
    pub to: Vec<Person>,
    #[prost(message, repeated, tag = "3")]
    pub cc: Vec<Person>,
    #[prost(message, optional, tag = "4")]
    pub reply_to: Option<Person>,
    #[prost(string, tag = "5")]
    pub subject: String,
    #[prost(string, optional, tag = "6")]
    pub text: Option<String>,
    #[prost(string, optional, tag = "7")]
    pub html: Option<String>,
    #[prost(message, repeated, tag = "8")]
    pub parts: Vec<Part>,
    #[prost(message, repeated, tag = "9")]
    pub headers: Vec<Header>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Person {
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    #[prost(string, tag = "2")]
    pub address: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Header {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub value: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Part {
    /// The reference of a part that is loaded at delivery; the other fields but `size` are empty then.
    #[prost(string, optional, tag = "1")]
    pub later: Option<String>,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(string, tag = "3")]
    pub content_type: String,
    #[prost(bytes = "vec", tag = "4")]
    pub bytes: Vec<u8>,
    /// The bytes of a file that is read at delivery; 0 where this is not known.
    #[prost(uint64, tag = "5")]
    pub size: u64,
}

impl Stored {
    pub(super) fn of(mail: &Mail) -> Self {
        Self {
            from: Some(person(&mail.from)),
            to: mail.to.iter().map(person).collect(),
            cc: mail.cc.iter().map(person).collect(),
            reply_to: mail.reply_to.as_ref().map(person),
            subject: mail.subject.clone(),
            text: mail.text.clone(),
            html: mail.html.clone(),
            parts: mail.attachments.iter().map(part).collect(),
            headers: mail.headers.iter().map(header).collect(),
        }
    }
}

fn person(mailbox: &Mailbox) -> Person {
    Person { name: mailbox.name.clone(), address: mailbox.email.to_string() }
}

impl Person {
    /// The mailbox for a header, with the name made safe.
    pub(super) fn mailbox(&self) -> Result<Mailbox, String> {
        let address =
            self.address.parse().map_err(|error| format!("the address {}: {error}", self.address))?;
        let name = self.name.as_deref().map(one_line).filter(|name| !name.is_empty());
        Ok(Mailbox::new(name, address))
    }
}

fn header((name, value): &(&'static str, String)) -> Header {
    Header { name: (*name).to_owned(), value: value.clone() }
}

fn part(attachment: &Attachment) -> Part {
    match attachment {
        Attachment::Inline(Attached { name, content_type, bytes }) => {
            let (name, content_type, bytes) = (name.clone(), content_type.clone(), bytes.clone());
            Part { name, content_type, bytes, ..Part::default() }
        }
        Attachment::Later { reference } => Part { later: Some(reference.clone()), ..Part::default() },
        Attachment::File { id, size } => {
            let file = FileReference { id: *id, size: *size };
            Part { later: Some(file.text()), size: file.size, ..Part::default() }
        }
    }
}

impl From<Attached> for Part {
    fn from(Attached { name, content_type, bytes }: Attached) -> Self {
        Self { name, content_type, bytes, ..Self::default() }
    }
}
