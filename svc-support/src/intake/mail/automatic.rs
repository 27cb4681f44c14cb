//! Recognises mail of programs and mailing lists by its headers. Such mail is stored, for people to read, but programs do
//! not answer it. Pure.

use chassis_work::mail::automatic::{DEPTH_HEADER, read_depth};
use mail_parser::{Message, MimeHeaders};

use crate::automatic::Automatic;

/// Whether a person wrote a mail, according to its headers. `sender` is the sender of the envelope, if given.
pub(super) fn detect(message: &Message<'_>, sender: Option<&str>) -> Automatic {
    let submitted = header(message, "Auto-Submitted");
    // The value may be followed by parameters.
    let submitted = submitted.split(';').next().unwrap_or_default().trim();
    let says = |name: &'static str| !matches!(header(message, name).as_str(), "" | "no");
    // The envelope of a bounce has an empty sender.
    let is_bounce = sender == Some("") || header(message, "Return-Path") == "<>";
    if is_bounce
        || !matches!(submitted, "" | "no")
        || matches!(header(message, "Precedence").as_str(), "bulk" | "junk" | "auto_reply")
        || says("X-Autoreply")
        || says("X-Autorespond")
        || depth(message) > 0
        || is_report(message)
    {
        Automatic::Program
    } else if header(message, "Precedence") == "list" || says("List-Id") {
        // The shared mailbox of a team is often a list, and people write to those.
        Automatic::List
    } else {
        Automatic::No
    }
}

/// The length of the chain of events that led to a mail, according to its header.
pub(super) fn depth(message: &Message<'_>) -> u32 {
    read_depth(&header(message, DEPTH_HEADER))
}

fn header(message: &Message<'_>, name: &'static str) -> String {
    message.header_raw(name).map(|value| value.trim().to_ascii_lowercase()).unwrap_or_default()
}

/// Whether it is a report on the delivery of another mail (RFC 3462).
fn is_report(message: &Message<'_>) -> bool {
    message.content_type().is_some_and(|kind| {
        kind.ctype().eq_ignore_ascii_case("multipart")
            && kind.subtype().is_some_and(|subtype| subtype.eq_ignore_ascii_case("report"))
    })
}
