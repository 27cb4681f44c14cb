//! Mail that programs write to programs: answering or even keeping it would let two of them write to each other for
//! ever. Pure.

use mail_parser::{Message, MimeHeaders};

/// Why a mail is not for people, if it is not. `sender` is the envelope's, when it is known.
pub fn reason(message: &Message<'_>, sender: Option<&str>) -> Option<&'static str> {
    let header = |name: &'static str| {
        message.header_raw(name).map(|value| value.trim().to_ascii_lowercase()).unwrap_or_default()
    };
    let submitted = header("Auto-Submitted");
    // The value may be followed by parameters.
    let submitted = submitted.split(';').next().unwrap_or_default().trim();
    if sender == Some("") {
        Some("it is a bounce: the envelope has no sender")
    } else if !matches!(submitted, "" | "no") {
        Some("Auto-Submitted says that a program wrote it")
    } else if matches!(header("Precedence").as_str(), "bulk" | "junk" | "auto_reply") {
        // Not `list`: mailboxes that a team shares are often lists, and forwarded from there.
        Some("Precedence says that a program wrote it")
    } else if ["X-Autoreply", "X-Autorespond"]
        .into_iter()
        .any(|name| !matches!(header(name).as_str(), "" | "no"))
    {
        Some("it is an automatic reply")
    } else if is_report(message) {
        Some("it is a report on the delivery of another mail")
    } else {
        None
    }
}

fn is_report(message: &Message<'_>) -> bool {
    message.content_type().is_some_and(|kind| {
        kind.ctype().eq_ignore_ascii_case("multipart")
            && kind.subtype().is_some_and(|subtype| subtype.eq_ignore_ascii_case("report"))
    })
}
