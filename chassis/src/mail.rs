//! Mail: queued in the transaction that causes it, delivered later by a worker.
//!
//! A mail is made when it is queued, `Message-ID` and `Date` included, and only the finished text is kept. Delivery
//! happens outside any transaction. Should the process die between the server's "accepted" and the note of it, the mail
//! goes out again, with the same `Message-ID`, by which receiving systems recognise it; otherwise it goes out once.

mod delivery;

use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Attachment as Part, Body, MultiPart, SinglePart};
use lettre::{Address, Message};
use uuid::Uuid;

pub(crate) use delivery::worker;
pub use delivery::{ATTEMPTS, Post};
pub use lettre::message::Mailbox;

use crate::error::Error;
use crate::write::Tx;

/// A mail to be sent. Addresses have been parsed: see [`mailbox`].
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
    /// What the mail is about, for those who look at the queue; for example a kind and an id.
    pub reference: String,
}

#[derive(Clone, Debug)]
pub struct Attachment {
    pub name: String,
    /// For example `application/pdf`.
    pub content_type: String,
    pub bytes: Vec<u8>,
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
}

/// An address with the name to show, if it is one. Input is checked with this, so that queueing cannot fail on it.
pub fn mailbox(name: &str, address: &str) -> Option<Mailbox> {
    let address: Address = address.trim().parse().ok().filter(|_| address.len() <= 254)?;
    let name = one_line(name);
    Some(Mailbox::new(Some(name).filter(|name| !name.is_empty()), address))
}

/// Control characters have no business in a header.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ").trim().to_owned()
}

impl Tx<'_> {
    /// Queues a mail; it is delivered after the commit. Returns its id, which is also in its `Message-ID`.
    pub async fn queue_mail(&mut self, mail: &Mail) -> Result<Uuid, Error> {
        let (id, account, now) = (self.id(), self.account(), self.now());
        let message = compose(mail, id, now).map_err(|error| Error::Internal(format!("a mail: {error}")))?;
        let envelope = message.envelope();
        let recipients: Vec<String> = envelope.to().iter().map(ToString::to_string).collect();
        sqlx::query(
            "insert into mail (account_id, id, sender, recipients, message, reference, status, next_at, created_at)
             values ($1, $2, $3, $4, $5, $6, 'queued', $7, $7)",
        )
        .bind(account)
        .bind(id)
        .bind(mail.from.email.to_string())
        .bind(recipients)
        .bind(message.formatted())
        .bind(&mail.reference)
        .bind(now)
        .execute(self.db())
        .await?;
        Ok(id)
    }
}

fn compose(mail: &Mail, id: Uuid, now: chrono::DateTime<chrono::Utc>) -> Result<Message, String> {
    let mut builder = Message::builder()
        .from(mail.from.clone())
        .subject(one_line(&mail.subject))
        .date(now.into())
        .message_id(Some(format!("<{id}@{}>", mail.from.email.domain())));
    builder = mail.to.iter().cloned().fold(builder, lettre::message::MessageBuilder::to);
    builder = mail.cc.iter().cloned().fold(builder, lettre::message::MessageBuilder::cc);
    if let Some(reply_to) = &mail.reply_to {
        builder = builder.reply_to(reply_to.clone());
    }
    for (name, value) in &mail.headers {
        let name =
            HeaderName::new_from_ascii((*name).to_owned()).map_err(|_| format!("the header {name}"))?;
        builder = builder.raw_header(HeaderValue::new(name, one_line(value)));
    }
    let made = match (content(mail)?, mail.attachments.as_slice()) {
        (Content::Single(part), []) => builder.singlepart(part),
        (Content::Multi(part), []) => builder.multipart(part),
        (content, attachments) => {
            let mixed = match content {
                Content::Single(part) => MultiPart::mixed().singlepart(part),
                Content::Multi(part) => MultiPart::mixed().multipart(part),
            };
            builder.multipart(attachments.iter().map(part).fold(mixed, MultiPart::singlepart))
        }
    };
    made.map_err(|error| error.to_string())
}

enum Content {
    Single(SinglePart),
    Multi(MultiPart),
}

fn content(mail: &Mail) -> Result<Content, String> {
    match (&mail.text, &mail.html) {
        (Some(text), Some(html)) => {
            Ok(Content::Multi(MultiPart::alternative_plain_html(text.clone(), html.clone())))
        }
        (Some(text), None) => Ok(Content::Single(SinglePart::plain(text.clone()))),
        (None, Some(html)) => Ok(Content::Single(SinglePart::html(html.clone()))),
        (None, None) => Err("has neither text nor html".to_owned()),
    }
}

fn part(attachment: &Attachment) -> SinglePart {
    let any = || ContentType::parse("application/octet-stream").unwrap_or(ContentType::TEXT_PLAIN);
    let content_type = ContentType::parse(&attachment.content_type).unwrap_or_else(|_| any());
    // A path would tell where a file came from, and some readers would follow it.
    let name = one_line(&attachment.name).replace(['/', '\\', '"'], "_");
    Part::new(name).body(Body::new(attachment.bytes.clone()), content_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(mail: &Mail) -> String {
        let message = compose(mail, Uuid::from_u128(7), chrono::DateTime::UNIX_EPOCH).unwrap();
        String::from_utf8(message.formatted()).unwrap()
    }

    fn plain(subject: &str) -> Mail {
        let from = mailbox("Bakery", "info@bakery.example").unwrap();
        let to = vec![mailbox("", "ann@client.example").unwrap()];
        Mail { text: Some("Hello".into()), ..Mail::new(from, to, subject) }
    }

    #[test]
    fn text_of_others_adds_no_header() {
        let injection = "x\r\nBcc: victim@example.com\r\n\r\nbody";
        let mut mail = plain(injection);
        mail.to = vec![mailbox(injection, "ann@client.example").unwrap()];
        mail.headers = vec![("X-Reference", injection.to_owned())];
        mail.attachments = vec![Attachment {
            name: format!("{injection}\".pdf"),
            content_type: "application/pdf\r\nBcc: victim@example.com".into(),
            bytes: vec![1],
        }];
        let text = made(&mail);
        let injected = text.lines().filter(|line| line.to_ascii_lowercase().starts_with("bcc")).count();
        assert_eq!(injected, 0, "{text}");
        let message = compose(&mail, Uuid::nil(), chrono::DateTime::UNIX_EPOCH).unwrap();
        assert_eq!(message.envelope().to().len(), 1);
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for wrong in [
            "",
            "ann",
            "ann@",
            "@client.example",
            "a b@c.example",
            "ann@client.example\r\nBcc: x@y.z",
            "ann@client.example, bob@client.example",
            "<ann@client.example>",
            "ann@client.example>",
        ] {
            assert!(mailbox("", wrong).is_none(), "{wrong:?}");
        }
        assert!(mailbox("", &format!("{}@client.example", "a".repeat(300))).is_none());
        assert!(mailbox("Ann", " ann+x@client.example ").is_some());
    }

    #[test]
    fn the_message_id_is_ours_and_the_subject_may_have_any_letter() {
        let text = made(&plain("Überweisung für Müller – €5"));
        assert!(text.contains("Message-ID: <00000000-0000-0000-0000-000000000007@bakery.example>"), "{text}");
        assert!(text.contains("Subject: =?utf-8?b?"), "{text}");
        assert!(
            compose(&Mail { text: None, ..plain("s") }, Uuid::nil(), chrono::DateTime::UNIX_EPOCH).is_err()
        );
    }
}
