//! Mail that programs write to programs, and mailing lists: it is kept, for people to see, but no program answers it. Two
//! of them would write to each other for ever. Pure.

use chassis::mail::automatic::{DEPTH_HEADER, read_depth};
use mail_parser::{Message, MimeHeaders};

use crate::message::Automatic;

/// Whether a person wrote a mail, as far as it tells. `sender` is the envelope's, when it is known.
pub fn of(message: &Message<'_>, sender: Option<&str>) -> Automatic {
    let submitted = header(message, "Auto-Submitted");
    // The value may be followed by parameters.
    let submitted = submitted.split(';').next().unwrap_or_default().trim();
    let says = |name: &'static str| !matches!(header(message, name).as_str(), "" | "no");
    // A bounce has no sender.
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
        // Mailboxes that a team shares are often lists, and people write to those.
        Automatic::List
    } else {
        Automatic::No
    }
}

/// How many events in a row led to a mail, as it says itself.
pub fn depth(message: &Message<'_>) -> u32 {
    read_depth(&header(message, DEPTH_HEADER))
}

fn header(message: &Message<'_>, name: &'static str) -> String {
    message.header_raw(name).map(|value| value.trim().to_ascii_lowercase()).unwrap_or_default()
}

/// On the delivery of another mail.
fn is_report(message: &Message<'_>) -> bool {
    message.content_type().is_some_and(|kind| {
        kind.ctype().eq_ignore_ascii_case("multipart")
            && kind.subtype().is_some_and(|subtype| subtype.eq_ignore_ascii_case("report"))
    })
}
