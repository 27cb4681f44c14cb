//! What a mail says, made harmless: bounded, without control characters, its HTML safe. Pure. Whatever the bytes are,
//! reading them ends soon and ends well.

use mail_parser::{Address, HeaderValue, Message, MessageParser, MessagePart, MimeHeaders, PartType};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::automatic;
use crate::message::{Automatic, content};

/// Parts that declare what they are. Mails inside of mails are read, and forgotten, one inside the other.
const MOST_PARTS: usize = 500;
const MOST_ATTACHMENTS: usize = 50;
const MOST_TEXTS: usize = 10;
const MOST_REFERENCES: usize = 50;
const MOST_ADDRESSES: usize = 100;
const MOST_LINE: usize = 255;
const MOST_ID: usize = 500;

/// A mail as it is taken in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mail {
    /// Its own, or one made of its content.
    pub message_id: String,
    /// The mails that it refers to, the closest first.
    pub references: Vec<String>,
    pub subject: String,
    pub from_name: String,
    /// In lower case, as all addresses; `""` when it has none.
    pub from_email: String,
    /// Where its author wants answers, when that is somewhere else.
    pub reply_to: String,
    pub to: Vec<String>,
    pub cc: Vec<String>,
    /// Where it was delivered on the way here, by the headers that servers add.
    pub delivered_to: Vec<String>,
    pub text: String,
    pub html: String,
    pub attachments: Vec<Attached>,
    pub automatic: Automatic,
    /// How many events in a row led to it, as it says itself.
    pub depth: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    pub name: String,
    pub content_type: String,
    pub bytes: Vec<u8>,
}

/// `None` when it is no mail, or one that is put together too artfully. `sender` is the envelope's, when it is known.
pub fn read(raw: &[u8], sender: Option<&str>) -> Option<Mail> {
    if count_types(raw) > MOST_PARTS {
        return None;
    }
    let message = MessageParser::default().parse(raw)?;
    let digest: [u8; 32] = Sha256::digest(raw).into();
    let from = message.from().and_then(Address::first);
    let from_email = from.and_then(|from| from.address()).and_then(address);
    let from_email = from_email.or_else(|| sender.and_then(address)).unwrap_or_default();
    let reply_to = message.reply_to().and_then(Address::first).and_then(|to| to.address()).and_then(address);
    let (text, html) = body(&message);
    let (automatic, depth) = (automatic::of(&message, sender), automatic::depth(&message));
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
        automatic,
        depth,
    };
    mail.attachments = attachments(message);
    Some(mail)
}

/// How often a part says what it is.
fn count_types(raw: &[u8]) -> usize {
    const NAME: &[u8] = b"content-type";
    raw.windows(NAME.len()).filter(|window| window.eq_ignore_ascii_case(NAME)).count()
}

fn message_id(message: &Message<'_>, digest: &[u8; 32]) -> String {
    let own = message.message_id().and_then(id);
    // Without an id of its own its content has to tell it from others.
    own.unwrap_or_else(|| format!("{}@no-message-id", uuid_of(digest).simple()))
}

fn id(text: &str) -> Option<String> {
    let id = text.trim().trim_matches(['<', '>']);
    let right =
        !id.is_empty() && id.len() <= MOST_ID && !id.contains(|c: char| c.is_control() || c.is_whitespace());
    right.then(|| id.to_owned())
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
    let before = ids(message.references());
    for id in ids(message.in_reply_to()).into_iter().chain(before.into_iter().rev()).take(MOST_REFERENCES) {
        if !found.contains(&id) {
            found.push(id);
        }
    }
    found
}

fn addresses(header: Option<&Address<'_>>) -> Vec<String> {
    let all = header.into_iter().flat_map(Address::iter);
    all.filter_map(|one| one.address().and_then(address)).take(MOST_ADDRESSES).collect()
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
        .take(MOST_ADDRESSES)
        .collect()
}

/// In lower case, as it is compared and stored.
fn address(text: &str) -> Option<String> {
    chassis::formats::email::normalise(&text.to_lowercase())
}

fn body(message: &Message<'_>) -> (String, String) {
    let mut text = String::new();
    for part in message.text_bodies().take(MOST_TEXTS) {
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
        return (String::new(), String::new());
    }
    content::both(&text, html.unwrap_or_default(), false)
}

/// The files of a mail. They leave it, so that their bytes are not there twice.
fn attachments(mut message: Message<'_>) -> Vec<Attached> {
    let ids = std::mem::take(&mut message.attachments);
    let mut found = Vec::new();
    for part in ids.into_iter().filter_map(|id| usize::try_from(id).ok()) {
        let Some(part) = message.parts.get_mut(part) else { continue };
        let (name, content_type) =
            (file_name(part.attachment_name().unwrap_or_default()), content_type(part));
        let bytes = bytes_of(std::mem::replace(&mut part.body, PartType::Multipart(Vec::new())));
        if !bytes.is_empty() && found.len() < MOST_ATTACHMENTS {
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

/// A name without a path and without anything that a reader does not see.
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
    let named = part.content_type().and_then(|kind| Some((kind.ctype(), kind.subtype()?)));
    match named {
        Some((kind, subtype)) if is_token(kind) && is_token(subtype) => {
            format!("{kind}/{subtype}").to_ascii_lowercase()
        }
        _ if part.is_message() => "message/rfc822".to_owned(),
        _ => "application/octet-stream".to_owned(),
    }
}

/// A text on one line, as long as a short field may be: no control characters, none that change the order of letters.
fn line(text: &str) -> String {
    let hidden = |letter: char| matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    let spaced: String = text
        .chars()
        .take(10 * MOST_LINE)
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect();
    let words = spaced.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().filter(|letter| !hidden(*letter)).take(MOST_LINE).collect::<String>().trim().to_owned()
}

#[cfg(test)]
#[path = "mail_tests.rs"]
mod tests;
