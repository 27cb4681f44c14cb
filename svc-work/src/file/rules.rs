//! Names and media types of files: input from outside is made harmless. Pure.

use std::fmt::Write;

use proto::work::FileKind;

/// How many characters a name can have.
const MAX_NAME_LENGTH: usize = 255;
/// How many characters an extension can have; a longer one is part of the name.
const MAX_EXTENSION_LENGTH: usize = 16;
/// The name of a file whose own name has nothing that can be kept.
const DEFAULT_NAME: &str = "file";
/// The media type of a file whose own type is unknown, or must not be sent to a browser.
const DEFAULT_TYPE: &str = "application/octet-stream";

/// Media types that a browser may show: none of them can run code.
const INLINE_TYPES: [&str; 6] =
    ["application/pdf", "image/gif", "image/jpeg", "image/png", "image/webp", "text/plain"];

/// Media types by extension, for uploads that name none.
const TYPES_BY_EXTENSION: [(&str, &str); 20] = [
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

/// The name that a file is stored with: without folders, without invisible characters and those that change the direction
/// of text, and never empty.
pub(crate) fn safe_name(given: &str) -> String {
    let last = given.rsplit(['/', '\\']).find(|part| !part.trim_matches(is_edge).is_empty());
    let visible: String = last.unwrap_or_default().chars().filter(|c| !is_hidden(*c)).collect();
    let name = shorten(visible.trim_matches(is_edge));
    if name.is_empty() { DEFAULT_NAME.to_owned() } else { name }
}

/// White space, and dots that would hide a file or lead to another folder.
fn is_edge(c: char) -> bool {
    c.is_whitespace() || c == '.' || is_hidden(c)
}

/// Control characters, and those that change the direction of text or have no width: `photo<RLO>gpj.exe` looks harmless.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Cuts a name that is too long, and keeps its extension.
fn shorten(name: &str) -> String {
    if name.chars().count() <= MAX_NAME_LENGTH {
        return name.to_owned();
    }
    let extension = match extension_of(name) {
        Some(extension) => format!(".{extension}"),
        None => String::new(),
    };
    let kept = MAX_NAME_LENGTH - extension.chars().count();
    let stem: String = name.chars().take(kept).collect();
    stem.trim_end_matches(is_edge).to_owned() + &extension
}

/// The kind of a file as it is stored, which is the type of its source. `None` for no kind.
pub(super) fn kind_name(kind: FileKind) -> Option<&'static str> {
    Some(match kind {
        FileKind::Unspecified => return None,
        FileKind::Upload => "upload",
        FileKind::Invoice => "invoice",
        FileKind::Quote => "quote",
        FileKind::Workorder => "workorder",
        FileKind::TicketMessage => "ticket_message",
    })
}

/// The text after the last dot, in lower case; empty when there is none.
pub(super) fn extension(name: &str) -> String {
    extension_of(name).map(str::to_lowercase).unwrap_or_default()
}

fn extension_of(name: &str) -> Option<&str> {
    let (stem, extension) = name.rsplit_once('.')?;
    let usable = !stem.is_empty()
        && (1..=MAX_EXTENSION_LENGTH).contains(&extension.chars().count())
        && extension.chars().all(char::is_alphanumeric);
    usable.then_some(extension)
}

/// The media type that a file is stored with: `type/subtype` in lower case. It follows from the name when the given text is
/// not a media type.
pub(crate) fn media_type(given: &str, name: &str) -> String {
    let essence = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if is_media_type(&essence) {
        return essence;
    }
    let extension = extension(name);
    let found = TYPES_BY_EXTENSION.iter().find(|(ending, _)| *ending == extension);
    found.map_or(DEFAULT_TYPE, |(_, media_type)| media_type).to_owned()
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

/// The headers that a file is sent to a browser with.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DownloadHeaders {
    pub content_type: String,
    pub disposition: String,
    pub policy: &'static str,
}

/// Lets a browser show a file of a harmless type and save every other file. The type of a file that a browser could run
/// is not sent.
pub(super) fn download_headers(name: &str, media_type: &str) -> DownloadHeaders {
    let is_inline = INLINE_TYPES.contains(&media_type);
    let content_type = match media_type {
        "text/plain" => "text/plain; charset=utf-8",
        active if is_active(active) => DEFAULT_TYPE,
        other => other,
    };
    DownloadHeaders {
        content_type: content_type.to_owned(),
        disposition: disposition(if is_inline { "inline" } else { "attachment" }, name),
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

/// `Content-Disposition` with the name twice (RFC 6266): in ASCII for old programs, and in UTF-8.
fn disposition(kind: &str, name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || " -_.()".contains(c);
    let ascii: String = name.chars().map(|c| if plain(c) { c } else { '_' }).collect();
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
