//! Usual mails, and mails that were made to do harm.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn lines(lines: &[&str]) -> Vec<u8> {
    lines.join("\r\n").into_bytes()
}

fn full() -> Vec<u8> {
    lines(&[
        "Received: from a by b; Sat, 14 Nov 2026 10:00:00 +0100",
        "Delivered-To: <In@Mail.Example.com>",
        "From: =?utf-8?q?S=C3=A0nne?= <Sanne@Client.example>",
        "To: Support <support@bakery.example>, b@c.nl",
        "Cc: d@e.nl",
        "Reply-To: desk@client.example",
        "Subject: =?utf-8?b?w5xiZXI=?= the\r\n bread",
        "Message-ID: <abc@client.example>",
        "In-Reply-To: <2@bakery.example>",
        "References: <1@bakery.example> <2@bakery.example>",
        "MIME-Version: 1.0",
        "Content-Type: multipart/mixed; boundary=x",
        "",
        "--x",
        "Content-Type: multipart/alternative; boundary=y",
        "",
        "--y",
        "Content-Type: text/plain; charset=utf-8",
        "",
        "Where is it?",
        "--y",
        "Content-Type: text/html; charset=utf-8",
        "",
        "<p>Where <script>alert(1)</script>is <b>it</b>?</p>",
        "--y--",
        "--x",
        "Content-Type: image/PNG; name=\"../../etc/pass\u{202e}wd.png\"",
        "Content-Disposition: attachment",
        "Content-Transfer-Encoding: base64",
        "",
        "aGVsbG8=",
        "--x--",
        "",
    ])
}

#[test]
fn all_parts_of_a_mail_are_parsed() {
    let mail = parse(&full(), Some("bounce@client.example")).unwrap();
    assert_eq!(mail.message_id, "abc@client.example");
    assert_eq!(mail.references, ["2@bakery.example", "1@bakery.example"]);
    assert_eq!((mail.from_name.as_str(), mail.from_email.as_str()), ("Sànne", "sanne@client.example"));
    assert_eq!(mail.reply_to, "desk@client.example");
    assert_eq!(mail.to, ["support@bakery.example", "b@c.nl"]);
    assert_eq!(mail.cc, ["d@e.nl"]);
    assert_eq!(mail.delivered_to, ["in@mail.example.com"]);
    assert_eq!(mail.subject, "Über the bread");
    assert_eq!(mail.text, "Where is it?");
    assert_eq!(mail.html, "<p>Where is <b>it</b>?</p>");
    let [file] = mail.attachments.as_slice() else { panic!("{:?}", mail.attachments) };
    assert_eq!((file.name.as_str(), file.content_type.as_str()), ("passwd.png", "image/png"));
    assert_eq!(file.bytes, b"hello");
    assert_eq!((mail.automatic, mail.depth), (Automatic::No, 0));
}

#[test]
fn mail_of_programs_is_recognised() {
    let with = |header: &str, sender: Option<&str>| {
        let mail = lines(&[header, "From: a@b.nl", "Subject: Away", "", "I am away."]);
        parse(&mail, sender).unwrap().automatic
    };
    for header in [
        "Auto-Submitted: auto-replied",
        "auto-submitted: auto-generated; x=y",
        "Precedence: bulk",
        "Precedence:  Auto_Reply",
        "X-Autoreply: yes",
        "Return-Path: <>",
        "X-Automation-Depth: 2",
        "Content-Type: multipart/report; report-type=delivery-status; boundary=x",
    ] {
        assert_eq!(with(header, Some("a@b.nl")), Automatic::Program, "{header}");
    }
    for header in ["Precedence: list", "List-Id: Team <team.b.nl>"] {
        assert_eq!(with(header, Some("a@b.nl")), Automatic::List, "{header}");
    }
    for header in ["Auto-Submitted: no", "Precedence: normal", "X-Automation-Depth: none", "X-Other: 1"] {
        assert_eq!(with(header, Some("a@b.nl")), Automatic::No, "{header}");
    }
    assert_eq!(with("X-Other: 1", Some("")), Automatic::Program, "a bounce has no sender");
    assert_eq!(with("X-Other: 1", None), Automatic::No, "an unknown sender is not an empty one");
}

#[test]
fn a_mail_without_an_id_is_identified_by_its_content() {
    let one = parse(b"From: a@b.nl\r\n\r\nHello", None).unwrap();
    let same = parse(b"From: a@b.nl\r\n\r\nHello", None).unwrap();
    let other = parse(b"From: a@b.nl\r\n\r\nHello!", None).unwrap();
    assert_eq!(one.message_id, same.message_id);
    assert_ne!(one.message_id, other.message_id);
    let long = format!("Message-ID: <{}@x>\r\nFrom: a@b.nl\r\n\r\nHello", "a".repeat(5000));
    assert!(parse(long.as_bytes(), None).unwrap().message_id.ends_with("@no-message-id"));
}

#[test]
fn the_depth_of_mails_inside_mails_is_limited() {
    let deep = "Content-Type: message/rfc822\r\n\r\n".repeat(100_000);
    assert_eq!(parse(deep.as_bytes(), None), None);
    let shallow = format!("{}From: a@b.nl\r\n\r\nx", "Content-Type: message/rfc822\r\n\r\n".repeat(400));
    parse(shallow.as_bytes(), None);
    let parts = (0..490).fold(String::from("From: a@b.nl\r\n"), |text, n| {
        format!("{text}Content-Type: multipart/mixed; boundary=b{n}\r\n\r\n--b{n}\r\n")
    });
    parse(parts.as_bytes(), None);
}

#[test]
fn long_values_and_long_lists_are_cut() {
    let mail = format!(
        "From: a@b.nl\r\nSubject: {}\r\nReferences: {}\r\nTo: {}\r\n\r\n{}",
        "x".repeat(100_000),
        "<a@b> ".repeat(10_000),
        "x@y.nl, ".repeat(10_000),
        "é".repeat(200_000),
    );
    let mail = parse(mail.as_bytes(), None).unwrap();
    assert_eq!(mail.subject.len(), MAX_LINE_CHARS);
    assert!(mail.references.len() <= MAX_REFERENCES && mail.to.len() <= MAX_ADDRESSES);
    assert_eq!(mail.text.chars().count(), content::MAX_CHARS);
    let many = format!(
        "From: a@b.nl\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n{}",
        "--x\r\nContent-Type: a/b\r\n\r\nhello\r\n".repeat(400)
    );
    assert_eq!(parse(many.as_bytes(), None).unwrap().attachments.len(), MAX_ATTACHMENTS);
}

/// Pieces that mails are made of, and that take parsers by surprise.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let fixed = prop::sample::select(vec![
        "From: ",
        "To: ",
        "Subject: ",
        "Message-ID: <",
        "References: ",
        "Content-Type: multipart/mixed; boundary=x\r\n",
        "Content-Type: text/html; charset=",
        "Content-Type: message/rfc822\r\n",
        "Content-Transfer-Encoding: base64\r\n",
        "Content-Transfer-Encoding: quoted-printable\r\n",
        "Content-Disposition: attachment; filename*0*=utf-8''%",
        "=?utf-8?q?",
        "=?iso-2022-jp?b?",
        "?=",
        "\r\n\r\n",
        "\r\n",
        "\n",
        "\r",
        "--x",
        "--x--",
        "<",
        ">",
        "\"",
        "(",
        ")",
        ",",
        ";",
        "@",
        "=",
        "=3D=",
        "\0",
        "\u{202e}",
        "utf-7",
        "<p>",
        "<!--",
        "&#x",
        "Auto-Submitted: ",
    ])
    .prop_map(|text| text.as_bytes().to_vec());
    prop_oneof![4 => fixed, 2 => vec(any::<u8>(), 0..20), 1 => "[ -~]{0,30}".prop_map(String::into_bytes)]
}

fn is_clean(text: &str) -> bool {
    !text.contains(|c: char| c.is_control())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_can_be_parsed(pieces in vec(piece(), 0..60), sender in proptest::option::of(any::<String>())) {
        if let Some(mail) = parse(&pieces.concat(), sender.as_deref()) {
            prop_assert!(!mail.message_id.is_empty() && mail.message_id.len() <= MAX_ID_BYTES);
            for text in [&mail.subject, &mail.from_name, &mail.from_email, &mail.message_id] {
                prop_assert!(is_clean(text), "{:?}", text);
            }
            for text in mail.references.iter().chain(&mail.to).chain(&mail.cc).chain(&mail.delivered_to) {
                prop_assert!(is_clean(text), "{:?}", text);
            }
            prop_assert!(!mail.text.contains('\0') && !mail.html.contains('\0'));
            prop_assert!(mail.text.chars().count() <= content::MAX_CHARS && mail.html.chars().count() <= content::MAX_CHARS);
            prop_assert!(!mail.html.contains("<script"));
            for file in &mail.attachments {
                prop_assert!(is_clean(&file.name) && !file.name.is_empty() && !file.name.contains(['/', '\\']));
                prop_assert!(file.content_type.is_ascii() && file.content_type.len() <= 201);
            }
        }
    }

    #[test]
    fn a_damaged_mail_can_be_parsed(position in 0..1200_usize, byte in any::<u8>(), cut in 0..1300_usize) {
        let mut mail = full();
        let at = position % mail.len();
        mail[at] = byte;
        mail.truncate(cut.max(1));
        parse(&mail, None);
    }
}
