//! Composes the message from a stored mail. The result is the same at every attempt.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use lettre::Message;
use lettre::message::header::{ContentTransferEncoding, ContentType, HeaderName, HeaderValue};
use lettre::message::{Attachment, Body, MessageBuilder, MultiPart, SinglePart};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::message::one_line;
use super::stored::{Part, Stored};

/// The part of a digest that a boundary ends with.
const DIGEST_BYTES: usize = 16;

/// `date` is when the mail was queued. All parts must be loaded; taken as a whole, so that no bytes of them are copied.
pub(super) fn compose(mail: Stored, id: Uuid, date: DateTime<Utc>) -> Result<Message, String> {
    let from = mail.from.as_ref().ok_or("the mail has no sender")?.mailbox()?;
    let mut builder = Message::builder()
        .message_id(Some(format!("<{id}@{}>", from.email.domain())))
        .from(from)
        .subject(one_line(&mail.subject))
        .date(date.into());
    for to in &mail.to {
        builder = builder.to(to.mailbox()?);
    }
    for cc in &mail.cc {
        builder = builder.cc(cc.mailbox()?);
    }
    if let Some(reply_to) = &mail.reply_to {
        builder = builder.reply_to(reply_to.mailbox()?);
    }
    for header in &mail.headers {
        let name = HeaderName::new_from_ascii(header.name.clone())
            .map_err(|_| format!("the header {} is invalid", header.name))?;
        builder = builder.raw_header(HeaderValue::new(name, one_line(&header.value)));
    }
    with_body(builder, mail, id)
}

fn with_body(builder: MessageBuilder, mut mail: Stored, id: Uuid) -> Result<Message, String> {
    let parts = std::mem::take(&mut mail.parts);
    let made = match content(&mail, id)? {
        Content::Single(part) if parts.is_empty() => builder.singlepart(part),
        Content::Multi(part) if parts.is_empty() => builder.multipart(part),
        content => {
            let mixed = MultiPart::mixed().boundary(boundary(&mail, id, "mixed"));
            let mixed = match content {
                Content::Single(part) => mixed.singlepart(part),
                Content::Multi(part) => mixed.multipart(part),
            };
            builder.multipart(parts.into_iter().map(attachment).fold(mixed, MultiPart::singlepart))
        }
    };
    made.map_err(|error| error.to_string())
}

/// A boundary between parts: the same for every attempt, of at most 70 characters, and not in the texts. It ends with a
/// digest of the texts, and no text can be written to contain its own digest. Attachments are encoded and cannot
/// contain it.
fn boundary(mail: &Stored, id: Uuid, kind: &str) -> String {
    let mut digest = Sha256::new();
    for text in mail.text.iter().chain(&mail.html) {
        digest.update(text);
    }
    let digest = URL_SAFE_NO_PAD.encode(&digest.finalize()[..DIGEST_BYTES]);
    format!("{}-{kind}-{digest}", id.simple())
}

enum Content {
    Single(SinglePart),
    Multi(MultiPart),
}

fn content(mail: &Stored, id: Uuid) -> Result<Content, String> {
    match (&mail.text, &mail.html) {
        (Some(text), Some(html)) => Ok(Content::Multi(
            MultiPart::alternative()
                .boundary(boundary(mail, id, "either"))
                .singlepart(SinglePart::plain(lines(text)))
                .singlepart(SinglePart::html(lines(html))),
        )),
        (Some(text), None) => Ok(Content::Single(SinglePart::plain(lines(text)))),
        (None, Some(html)) => Ok(Content::Single(SinglePart::html(lines(html)))),
        (None, None) => Err("the mail has neither text nor html".to_owned()),
    }
}

/// Normalises line ends, because mail systems disagree on whether a bare CR or LF ends a line.
fn lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n").replace('\0', "")
}

fn attachment(part: Part) -> SinglePart {
    let octets = "application/octet-stream";
    // Parts of these types must not be encoded (RFC 2045, section 6.4): mail readers would look for parts inside.
    let given = part.content_type.to_ascii_lowercase();
    let is_composite = ["message/", "multipart/"].iter().any(|kind| given.starts_with(kind));
    let content_type = if is_composite { octets } else { &part.content_type };
    let content_type = ContentType::parse(content_type).or_else(|_| ContentType::parse(octets));
    let content_type = content_type.unwrap_or(ContentType::TEXT_PLAIN);
    // A path would reveal where a file came from, and some mail readers would follow it.
    let name = one_line(&part.name).replace(['/', '\\', '"'], "_");
    // Always Base64: content that looks like text would be sent unencoded, including bare line feeds.
    let body = Body::new_with_encoding(part.bytes, ContentTransferEncoding::Base64).unwrap_or_else(Body::new);
    Attachment::new(name).body(body, content_type)
}
