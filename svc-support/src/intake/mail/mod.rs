//! Parses a mail into values that are safe to store: limited in length, without control characters, with sanitised HTML.
//! Pure. Any bytes can come in, so parsing is bounded in time and memory and never panics.

mod automatic;

use mail_parser::{Address, HeaderValue, Message, MessageParser, MessagePart, MimeHeaders, PartType};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::automatic::Automatic;
use crate::message::content::{self, Content};

/// The number of parts that declare a content type. The parser handles a mail inside a mail by recursion, so this also
/// limits the depth.
const MAX_PARTS: usize = 500;
const MAX_ATTACHMENTS: usize = 50;
const MAX_TEXTS: usize = 10;
const MAX_REFERENCES: usize = 50;
const MAX_ADDRESSES: usize = 100;
const MAX_LINE_CHARS: usize = 255;
const MAX_ID_BYTES: usize = 500;

/// The content of a mail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mail {
    /// The id that the mail has, or one made from its content.
    pub message_id: String,
    /// The ids of the mails that it refers to, the closest first.
    pub references: Vec<String>,
    pub subject: String,
    pub from_name: String,
    /// In lower case, like all addresses here; `""` when the mail has none.
    pub from_email: String,
    /// The address for answers, if it differs from `from_email`.
    pub reply_to: String,
    pub to: Vec<String>,
    pub cc: Vec<String>,
    /// The addresses that it was delivered to on the way, from the headers that mail servers add.
    pub delivered_to: Vec<String>,
    pub text: String,
    pub html: String,
    pub attachments: Vec<Attached>,
    pub automatic: Automatic,
    /// The length of the chain of events that led to it, according to its header.
    pub depth: u32,
}

/// A file of a mail, with its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    pub name: String,
    pub content_type: String,
    pub bytes: Vec<u8>,
}

/// `None` when the bytes are not a mail, or have too many parts. `sender` is the sender of the envelope, if given.
pub fn parse(raw: &[u8], sender: Option<&str>) -> Option<Mail> {
    if count_types(raw) > MAX_PARTS {
        return None;
    }
    let message = MessageParser::default().parse(raw)?;
    let digest: [u8; 32] = Sha256::digest(raw).into();
    let from = message.from().and_then(Address::first);
    let from_email = from.and_then(|from| from.address()).and_then(address);
    let from_email = from_email.or_else(|| sender.and_then(address)).unwrap_or_default();
    let reply_to = message.reply_to().and_then(Address::first).and_then(|to| to.address()).and_then(address);
    let Content { text, html } = body(&message);
    let mut mail = Mail {
        message_id: message_id(&message, &digest),
        references: references(&message),
        subject: line(message.subject().unwrap_or_default()),
        from_name: line(from.and_then(|from| from.name()).unwrap_or_default()),
        reply_to: reply_to.filter(|reply_to| *reply_to != from_email).unwrap_or_default(),
        from_email,
        to: addresses(message.to()),
        cc: addresses(message.cc()),
        delivered_to: delivered_to(&message),
        text,
        html,
        attachments: Vec::new(),
        automatic: automatic::detect(&message, sender),
        depth: automatic::depth(&message),
    };
    mail.attachments = attachments(message);
    Some(mail)
}

/// The number of content types that the parts of a mail declare.
fn count_types(raw: &[u8]) -> usize {
    const NAME: &[u8] = b"content-type";
    raw.windows(NAME.len()).filter(|window| window.eq_ignore_ascii_case(NAME)).count()
}

fn message_id(message: &Message<'_>, digest: &[u8; 32]) -> String {
    let own = message.message_id().and_then(id);
    // The same mail must get the same id when it comes again, so an id is made from its bytes.
    own.unwrap_or_else(|| format!("{}@no-message-id", uuid_of(digest).simple()))
}

fn id(text: &str) -> Option<String> {
    let id = text.trim().trim_matches(['<', '>']);
    let is_valid = !id.is_empty()
        && id.len() <= MAX_ID_BYTES
        && !id.contains(|c: char| c.is_control() || c.is_whitespace());
    is_valid.then(|| id.to_owned())
}

fn uuid_of(digest: &[u8; 32]) -> Uuid {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

fn references(message: &Message<'_>) -> Vec<String> {
    let ids = |value: &HeaderValue<'_>| -> Vec<String> {
        match value {
            HeaderValue::Text(text) => id(text).into_iter().collect(),
            HeaderValue::TextList(list) => list.iter().filter_map(|text| id(text)).collect(),
            _ => Vec::new(),
        }
    };
    let mut found: Vec<String> = Vec::new();
    let earlier = ids(message.references());
    for id in ids(message.in_reply_to()).into_iter().chain(earlier.into_iter().rev()).take(MAX_REFERENCES) {
        if !found.contains(&id) {
            found.push(id);
        }
    }
    found
}

fn addresses(header: Option<&Address<'_>>) -> Vec<String> {
    let all = header.into_iter().flat_map(Address::iter);
    all.filter_map(|one| one.address().and_then(address)).take(MAX_ADDRESSES).collect()
}

fn delivered_to(message: &Message<'_>) -> Vec<String> {
    let names = ["Delivered-To", "X-Original-To", "Envelope-To", "X-Forwarded-To"];
    let headers = message
        .headers()
        .iter()
        .filter(|header| names.iter().any(|name| header.name().eq_ignore_ascii_case(name)));
    let raw: &[u8] = &message.raw_message;
    let value = |start: u32, end: u32| {
        let bytes = raw.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)?;
        address(std::str::from_utf8(bytes).ok()?.trim().trim_matches(['<', '>']))
    };
    headers
        .filter_map(|header| value(header.offset_start(), header.offset_end()))
        .take(MAX_ADDRESSES)
        .collect()
}

/// An address in lower case, as addresses are compared and stored.
fn address(text: &str) -> Option<String> {
    chassis_base::formats::email::normalise(&text.to_lowercase())
}

fn body(message: &Message<'_>) -> Content {
    let mut text = String::new();
    for part in message.text_bodies().take(MAX_TEXTS) {
        match &part.body {
            PartType::Text(found) => text.push_str(&content::cut(found)),
            PartType::Html(found) => text.push_str(&content::text_of(found)),
            _ => continue,
        }
        text.push('\n');
    }
    let html = message.html_bodies().find_map(|part| match &part.body {
        PartType::Html(html) => Some(html.as_ref()),
        _ => None,
    });
    let text = content::cut(&text.replace("\r\n", "\n"));
    if text.is_empty() && html.is_none() {
        return Content::default();
    }
    content::complete(&text, html.unwrap_or_default(), false)
}

/// Takes the files out of a mail. They are moved, not copied, so that their bytes are in memory once.
fn attachments(mut message: Message<'_>) -> Vec<Attached> {
    let ids = std::mem::take(&mut message.attachments);
    let mut found = Vec::new();
    for part in ids.into_iter().filter_map(|id| usize::try_from(id).ok()) {
        let Some(part) = message.parts.get_mut(part) else { continue };
        let name = file_name(part.attachment_name().unwrap_or_default());
        let content_type = content_type(part);
        let bytes = bytes_of(std::mem::replace(&mut part.body, PartType::Multipart(Vec::new())));
        if !bytes.is_empty() && found.len() < MAX_ATTACHMENTS {
            found.push(Attached { name, content_type, bytes });
        }
    }
    found
}

fn bytes_of(body: PartType<'_>) -> Vec<u8> {
    match body {
        PartType::Text(text) | PartType::Html(text) => text.into_owned().into_bytes(),
        PartType::Binary(bytes) | PartType::InlineBinary(bytes) => bytes.into_owned(),
        PartType::Message(message) => message.raw_message().to_vec(),
        PartType::Multipart(_) => Vec::new(),
    }
}

/// A file name without a path and without invisible characters.
fn file_name(text: &str) -> String {
    let name = text.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = line(name);
    if matches!(name.as_str(), "" | "." | "..") { "attachment".to_owned() } else { name }
}

fn content_type(part: &MessagePart<'_>) -> String {
    let is_token = |text: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
        (1..=100).contains(&text.len()) && text.bytes().all(plain)
    };
    let declared = part.content_type().and_then(|kind| Some((kind.ctype(), kind.subtype()?)));
    match declared {
        Some((kind, subtype)) if is_token(kind) && is_token(subtype) => {
            format!("{kind}/{subtype}").to_ascii_lowercase()
        }
        _ if part.is_message() => "message/rfc822".to_owned(),
        _ => "application/octet-stream".to_owned(),
    }
}

/// A text on one line and of limited length, without control characters, invisible characters, and those that change the
/// direction of the text.
fn line(text: &str) -> String {
    let hidden = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    let spaced: String =
        text.chars().take(10 * MAX_LINE_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let words = spaced.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().filter(|c| !hidden(*c)).take(MAX_LINE_CHARS).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests;
