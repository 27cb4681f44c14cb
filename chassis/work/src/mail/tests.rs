//! Untrusted text in a mail is displayed and has no other effect.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use uuid::Uuid;

use prost::Message as _;

use super::compose::compose;
use super::stored::Stored;
use super::*;

fn made(mail: &Mail) -> String {
    // As the worker does: from the stored form.
    let stored = Stored::decode(Stored::of(mail).encode_to_vec().as_slice()).unwrap();
    let message = compose(stored, Uuid::from_u128(7), chrono::DateTime::UNIX_EPOCH).unwrap();
    String::from_utf8(message.formatted()).unwrap()
}

fn plain(subject: &str) -> Mail {
    let from = mailbox("Bakery", "info@bakery.example").unwrap();
    let to = vec![mailbox("", "ann@client.example").unwrap()];
    Mail { text: Some("Hello".into()), ..Mail::new(from, to, subject) }
}

/// Hostile text: line ends of all kinds, encoded words, quotes, headers, boundaries and long runs.
fn nasty() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\r\nBcc: victim@example.com"),
        Just("\nBcc: victim@example.com"),
        Just("\rBcc: victim@example.com"),
        Just("\r\n\r\n<html>"),
        Just("\r\n.\r\n"),
        Just("\u{2028}Bcc: victim@example.com"),
        Just("\u{2029}"),
        Just("\u{85}X: y"),
        Just("\u{b}\u{c}\0"),
        Just("=?utf-8?q?=0D=0ABcc:_victim@example.com?="),
        Just("=?utf-8?b?DQpCY2M6IHZpY3RpbUBleGFtcGxlLmNvbQ==?="),
        Just("\r\n--00000000000000000000000000000007-mixed\r\nContent-Type: text/html\r\n\r\n"),
        Just("--00000000000000000000000000000007-eitherx"),
        Just("\"<x@example.com>,"),
        Just("\\"),
        Just(";filename=x"),
        Just("é😀"),
        Just(" "),
        Just("\t"),
    ];
    let long = (any::<char>(), 1..3000_usize).prop_map(|(letter, times)| letter.to_string().repeat(times));
    let free = vec(any::<char>(), 0..40).prop_map(String::from_iter);
    let part = prop_oneof![4 => piece.prop_map(str::to_owned), 1 => long, 2 => free];
    vec(part, 0..6).prop_map(|parts| parts.concat())
}

fn person(address: &'static str) -> impl Strategy<Value = Mailbox> {
    option::of(nasty()).prop_map(move |name| Mailbox::new(name, address.parse().unwrap()))
}

prop_compose! {
    fn any_mail()(
        from in person("info@bakery.example"),
        to in person("ann@client.example"),
        cc in person("bob@client.example"),
        reply_to in option::of(person("reply@bakery.example")),
        subject in nasty(),
        text in option::of(nasty()),
        html in nasty(),
        header in nasty(),
        attached in vec((nasty(), nasty(), nasty()), 0..3),
    ) -> Mail {
        let attachments = attached.into_iter().map(|(name, content_type, bytes)| {
            Attachment::Inline(Attached { name, content_type, bytes: bytes.into_bytes() })
        });
        Mail {
            cc: vec![cc],
            reply_to,
            text,
            html: Some(html),
            attachments: attachments.collect(),
            headers: vec![("X-Reference", header)],
            ..Mail::new(from, vec![to], subject)
        }
    }
}

/// The names of the headers at the start of `text`, in order.
fn headers(text: &str) -> Vec<&str> {
    let (head, _) = text.split_once("\r\n\r\n").unwrap();
    let lines = head.split("\r\n").filter(|line| !line.starts_with([' ', '\t']));
    lines.map(|line| line.split_once(':').unwrap().0).collect()
}

/// The parts of a multipart text; none if it has a single part.
fn parts<'a>(text: &'a str, kind: &str) -> Vec<&'a str> {
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let Some((_, boundary)) = head.rsplit_once("boundary=\"") else { return Vec::new() };
    let boundary = format!("--{}", boundary.split('"').next().unwrap());
    assert!(boundary.contains(kind), "{boundary}");
    let (mut found, mut begin) = (Vec::new(), None);
    let mut place = 0;
    for line in body.split_inclusive("\r\n") {
        if line.starts_with(&boundary) {
            found.extend(begin.map(|begin| &body[begin..place]));
            begin = Some(place + line.len());
            if line.trim_end() == format!("{boundary}--") {
                break;
            }
        }
        place += line.len();
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn text_of_others_adds_no_header_and_no_part(mail in any_mail()) {
        let text = made(&mail);
        for line in text.split("\r\n") {
            prop_assert!(!line.contains(['\r', '\n', '\0']), "a bare line end: {line:?}");
            prop_assert!(line.is_ascii() && line.len() <= 998, "{line:?}");
        }
        let names = headers(&text);
        let mut expected = vec!["Message-ID", "From", "Subject", "Date", "To", "Cc"];
        expected.extend(mail.reply_to.as_ref().map(|_| "Reply-To"));
        expected.extend(["X-Reference", "MIME-Version", "Content-Type"]);
        let both = mail.text.is_some();
        if mail.attachments.is_empty() && !both {
            expected.push("Content-Transfer-Encoding");
        }
        prop_assert_eq!(names, expected, "{}", text);
        if mail.attachments.is_empty() {
            prop_assert_eq!(parts(&text, "either").len(), if both { 2 } else { 0 });
            return Ok(());
        }
        let found = parts(&text, "mixed");
        prop_assert_eq!(found.len(), 1 + mail.attachments.len(), "{}", text);
        prop_assert_eq!(parts(found[0], "either").len(), if both { 2 } else { 0 });
        for attachment in &found[1..] {
            let mut names = headers(attachment);
            names.sort_unstable();
            prop_assert_eq!(names, ["Content-Disposition", "Content-Transfer-Encoding", "Content-Type"]);
        }
    }

    #[test]
    fn an_address_is_one_address_or_none(text in nasty()) {
        for candidate in [text.clone(), format!("{text}@client.example"), format!("ann@{text}")] {
            if let Some(found) = mailbox("", &candidate) {
                let address = found.email.to_string();
                let broken = |letter: char| letter.is_control() || letter.is_whitespace();
                prop_assert!(!address.contains(broken) && address.len() <= 254, "{address:?}");
                let mail = Mail { to: vec![found], ..plain("s") };
                let stored = compose(Stored::of(&mail), Uuid::nil(), chrono::DateTime::UNIX_EPOCH).unwrap();
                prop_assert_eq!(stored.envelope().to().len(), 1);
            }
        }
    }
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
}

#[test]
fn a_mail_is_the_same_whenever_it_is_made() {
    let mut mail = plain("Hello");
    mail.html = Some("<p>Hello</p>".into());
    let attached = Attached { name: "a.txt".into(), content_type: "text/plain".into(), bytes: b"a".to_vec() };
    mail.attachments = vec![Attachment::Inline(attached)];
    assert_eq!(made(&mail), made(&mail));
}

#[test]
fn someone_named_twice_is_one_recipient() {
    let mut mail = plain("Hello");
    mail.cc = vec![mailbox("Ann", "ann@client.example").unwrap(), mailbox("", "bob@client.example").unwrap()];
    assert_eq!(mail.recipients(), ["ann@client.example", "bob@client.example"]);
}

#[test]
fn no_text_makes_a_boundary_longer_than_mail_allows() {
    let mut mail = plain("Hello");
    let first = made(&mail);
    let boundary = "--00000000000000000000000000000007-either";
    mail.text = Some(format!("{boundary}{}\r\n{first}", "x".repeat(2000)));
    mail.html = Some(format!("<p>{boundary}-x</p>"));
    let text = made(&mail);
    let used = text.split("boundary=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(used.len() <= 70, "{used}");
    assert_eq!(parts(&text, "either").len(), 2);
}

#[test]
fn a_mail_that_is_attached_is_a_file_like_others() {
    let mut mail = plain("Hello");
    let bytes = b"Subject: Inner\r\n\r\n--x\r\n".to_vec();
    mail.attachments = ["Message/RFC822", "multipart/mixed"]
        .map(|kind| {
            Attachment::Inline(Attached {
                name: "a.eml".into(),
                content_type: kind.into(),
                bytes: bytes.clone(),
            })
        })
        .to_vec();
    let text = made(&mail);
    assert_eq!(text.matches("Content-Type: application/octet-stream").count(), 2, "{text}");
    assert!(!text.contains("Inner") && text.contains("filename=\"a.eml\""), "{text}");
}
