//! Names and media types of files: what comes from outside is made harmless. Pure.

use std::fmt::Write;

/// Characters of a name.
const LONGEST_NAME: usize = 255;
/// Characters of an extension; what is longer is part of the name.
const LONGEST_EXTENSION: usize = 16;
const UNNAMED: &str = "file";
const UNKNOWN_TYPE: &str = "application/octet-stream";

/// What a browser may show by itself: none of these can run anything.
const SHOWN: [&str; 6] =
    ["application/pdf", "image/gif", "image/jpeg", "image/png", "image/webp", "text/plain"];

/// Types by extension, for uploads that name none.
const TYPES: [(&str, &str); 20] = [
    ("csv", "text/csv"),
    ("doc", "application/msword"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("eml", "message/rfc822"),
    ("gif", "image/gif"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("json", "application/json"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("odt", "application/vnd.oasis.opendocument.text"),
    ("ods", "application/vnd.oasis.opendocument.spreadsheet"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("txt", "text/plain"),
    ("webp", "image/webp"),
    ("xls", "application/vnd.ms-excel"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("zip", "application/zip"),
];

/// The name of a file as it is kept: without folders, without what cannot be seen or turns the text around, and never
/// empty.
pub fn safe_name(given: &str) -> String {
    let last = given.rsplit(['/', '\\']).find(|part| !part.trim_matches(is_edge).is_empty());
    let visible: String = last.unwrap_or_default().chars().filter(|letter| !is_hidden(*letter)).collect();
    let name = shorten(visible.trim_matches(is_edge));
    if name.is_empty() { UNNAMED.to_owned() } else { name }
}

/// White space, and points that would hide a file or lead to another folder.
fn is_edge(letter: char) -> bool {
    letter.is_whitespace() || letter == '.' || is_hidden(letter)
}

/// Control characters, and those that change the direction of text or take no room: `photo<RLO>gpj.exe` looks harmless.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Cuts a long name, and keeps its extension.
fn shorten(name: &str) -> String {
    if name.chars().count() <= LONGEST_NAME {
        return name.to_owned();
    }
    let extension = match extension_of(name) {
        Some(extension) => format!(".{extension}"),
        None => String::new(),
    };
    let kept = LONGEST_NAME - extension.chars().count();
    let stem: String = name.chars().take(kept).collect();
    stem.trim_end_matches(is_edge).to_owned() + &extension
}

/// What follows the last point, in lower case; empty when there is none.
pub fn extension(name: &str) -> String {
    extension_of(name).map(str::to_lowercase).unwrap_or_default()
}

fn extension_of(name: &str) -> Option<&str> {
    let (stem, extension) = name.rsplit_once('.')?;
    let usable = !stem.is_empty()
        && (1..=LONGEST_EXTENSION).contains(&extension.chars().count())
        && extension.chars().all(char::is_alphanumeric);
    usable.then_some(extension)
}

/// The type of a file as it is kept: `type/subtype` in lower case. What is none is found by the name.
pub fn media_type(given: &str, name: &str) -> String {
    let essence = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if is_media_type(&essence) {
        return essence;
    }
    let extension = extension(name);
    let known = TYPES.iter().find(|(ending, _)| *ending == extension);
    known.map_or(UNKNOWN_TYPE, |(_, media_type)| media_type).to_owned()
}

fn is_media_type(text: &str) -> bool {
    let word = |part: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte);
        (1..=127).contains(&part.len())
            && part.starts_with(|first: char| first.is_ascii_alphanumeric())
            && part.bytes().all(plain)
    };
    text.split_once('/').is_some_and(|(kind, subtype)| word(kind) && word(subtype))
}

/// How a file goes out to a browser.
#[derive(Debug, PartialEq, Eq)]
pub struct Sent {
    pub content_type: String,
    pub disposition: String,
    pub policy: &'static str,
}

/// Shows what is safe to show and offers everything else as a download. What a browser would run is not even called by
/// its type.
pub fn sent(name: &str, media_type: &str) -> Sent {
    let shown = SHOWN.contains(&media_type);
    let content_type = match media_type {
        "text/plain" => "text/plain; charset=utf-8",
        active if is_active(active) => UNKNOWN_TYPE,
        other => other,
    };
    Sent {
        content_type: content_type.to_owned(),
        disposition: disposition(if shown { "inline" } else { "attachment" }, name),
        // Browsers refuse to show a PDF inside a sandbox.
        policy: if media_type == "application/pdf" {
            "default-src 'none'; style-src 'unsafe-inline'; object-src 'self'; frame-ancestors 'none'"
        } else {
            "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"
        },
    }
}

fn is_active(media_type: &str) -> bool {
    let subtype = media_type.split_once('/').map_or("", |(_, subtype)| subtype);
    media_type.starts_with("multipart/")
        || media_type.starts_with("message/")
        || subtype.contains("html")
        || subtype.contains("script")
        || subtype.ends_with("xml")
        || subtype.contains("svg")
}

/// `Content-Disposition` with the name twice (RFC 6266): in ASCII for old programs, and as it is.
fn disposition(kind: &str, name: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || " -_.()".contains(letter);
    let ascii: String = name.chars().map(|letter| if plain(letter) { letter } else { '_' }).collect();
    let mut text = format!("{kind}; filename=\"{ascii}\"");
    if ascii != name {
        text.push_str("; filename*=UTF-8''");
        for byte in name.bytes() {
            if byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) {
                text.push(char::from(byte));
            } else {
                // Writing to a String cannot fail.
                let _ = write!(text, "%{byte:02X}");
            }
        }
    }
    text
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
