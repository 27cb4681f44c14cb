//! The text of a mail, made of what was stored: the same every time, whenever it is made.

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

/// `date` is when it was queued. No part may still have to be made.
pub(super) fn compose(mail: &Stored, id: Uuid, date: DateTime<Utc>) -> Result<Message, String> {
    let from = mail.from.as_ref().ok_or("has no sender")?.mailbox()?;
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
            .map_err(|_| format!("the header {}", header.name))?;
        builder = builder.raw_header(HeaderValue::new(name, one_line(&header.value)));
    }
    with_body(builder, mail, id)
}

fn with_body(builder: MessageBuilder, mail: &Stored, id: Uuid) -> Result<Message, String> {
    let made = match (content(mail, id)?, mail.parts.as_slice()) {
        (Content::Single(part), []) => builder.singlepart(part),
        (Content::Multi(part), []) => builder.multipart(part),
        (content, parts) => {
            let mixed = MultiPart::mixed().boundary(boundary(mail, id, "mixed"));
            let mixed = match content {
                Content::Single(part) => mixed.singlepart(part),
                Content::Multi(part) => mixed.multipart(part),
            };
            builder.multipart(parts.iter().map(attachment).fold(mixed, MultiPart::singlepart))
        }
    };
    made.map_err(|error| error.to_string())
}

/// A boundary between parts: the same for every attempt, of at most 70 characters, and not in the texts. It ends with a
/// digest of the texts, and no text can be written to hold its own digest. Attachments are encoded and cannot hold it.
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
        (None, None) => Err("has neither text nor html".to_owned()),
    }
}

/// No line end but ours: a bare one may be an end to one system and not to the next.
fn lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n").replace('\0', "")
}

fn attachment(part: &Part) -> SinglePart {
    let octets = "application/octet-stream";
    let content_type = ContentType::parse(&part.content_type).or_else(|_| ContentType::parse(octets));
    let content_type = content_type.unwrap_or(ContentType::TEXT_PLAIN);
    // A path would tell where a file came from, and some readers would follow it.
    let name = one_line(&part.name).replace(['/', '\\', '"'], "_");
    // Always the same encoding: what looks like text would be sent as it is, bare line feeds included.
    let body = Body::new_with_encoding(part.bytes.clone(), ContentTransferEncoding::Base64)
        .unwrap_or_else(Body::new);
    Attachment::new(name).body(body, content_type)
}
