use proptest::prelude::*;

use super::*;

#[test]
fn a_name_has_no_folders_nothing_hidden_and_is_never_empty() {
    for (given, kept) in [
        ("invoice.pdf", "invoice.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\photo.jpg", "photo.jpg"),
        ("/", "file"),
        ("", "file"),
        ("...", "file"),
        ("a/..", "a"),
        (".htaccess", "htaccess"),
        ("  spaced name .txt ", "spaced name .txt"),
        ("line\r\nbreak\0.txt", "linebreak.txt"),
        ("photo\u{202e}gpj.exe", "photogpj.exe"),
        ("\u{200b}\u{feff}", "file"),
        ("zażółć gęślą.pdf", "zażółć gęślą.pdf"),
        ("quote\".html", "quote\".html"),
    ] {
        assert_eq!(safe_name(given), kept, "{given:?}");
    }
}

#[test]
fn a_long_name_keeps_its_extension() {
    let name = safe_name(&format!("{}.pdf", "é".repeat(400)));
    assert_eq!(name.chars().count(), 255);
    assert_eq!(extension(&name), "pdf");
    assert_eq!(safe_name(&"x".repeat(300)), "x".repeat(255));
}

#[test]
fn an_extension_follows_the_last_dot() {
    for (name, expected) in [
        ("a.PDF", "pdf"),
        ("a.tar.gz", "gz"),
        ("a", ""),
        ("a.", ""),
        (".env", ""),
        ("a.b c", ""),
        ("a.é", "é"),
    ] {
        assert_eq!(extension(name), expected, "{name}");
    }
}

#[test]
fn a_type_is_kept_without_its_parameters_or_found_by_the_name() {
    for (given, name, expected) in [
        ("Text/HTML; charset=utf-8", "a", "text/html"),
        ("", "a.PDF", "application/pdf"),
        ("nonsense", "a.png", "image/png"),
        ("text/html\r\nX: y", "a", DEFAULT_TYPE),
        ("a/b/c", "a", DEFAULT_TYPE),
        ("/", "a", DEFAULT_TYPE),
    ] {
        assert_eq!(media_type(given, name), expected, "{given:?}");
    }
}

#[test]
fn only_harmless_types_are_shown_and_active_ones_are_not_named() {
    let sent_as = |media_type: &str| {
        let sent = download_headers("x", media_type);
        let kind = sent.disposition.split(';').next().unwrap().to_owned();
        (kind, sent.content_type)
    };
    let expect = |kind: &str, content_type: &str| (kind.to_owned(), content_type.to_owned());
    assert_eq!(sent_as("application/pdf"), expect("inline", "application/pdf"));
    assert_eq!(sent_as("text/plain"), expect("inline", "text/plain; charset=utf-8"));
    assert_eq!(sent_as("application/zip"), expect("attachment", "application/zip"));
    let word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
    assert_eq!(sent_as(word), expect("attachment", word));
    for active in [
        "text/html",
        "application/xhtml+xml",
        "image/svg+xml",
        "text/xml",
        "application/javascript",
        "text/ecmascript",
        "multipart/x-mixed-replace",
        "message/rfc822",
    ] {
        assert_eq!(sent_as(active), expect("attachment", DEFAULT_TYPE), "{active}");
    }
}

#[test]
fn a_name_that_is_not_plain_ascii_is_sent_in_two_forms() {
    assert_eq!(
        download_headers("a b.zip", "application/zip").disposition,
        "attachment; filename=\"a b.zip\""
    );
    assert_eq!(
        download_headers("a\"\\é;.zip", "application/zip").disposition,
        "attachment; filename=\"a____.zip\"; filename*=UTF-8''a%22%5C%C3%A9%3B.zip"
    );
}

proptest! {
    #[test]
    fn whatever_a_file_is_called_its_headers_can_be_sent(name in any::<String>(), claimed in any::<String>()) {
        let name = safe_name(&name);
        prop_assert!(!name.is_empty() && name.chars().count() <= 255 && !name.contains(['/', '\\', '\0']));
        prop_assert_eq!(safe_name(&name), name.clone(), "made harmless once is enough");
        let sent = download_headers(&name, &media_type(&claimed, &name));
        for header in [&sent.content_type, &sent.disposition] {
            prop_assert!(header.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{}", header);
        }
        let quotes = sent.disposition.matches('"').count();
        prop_assert_eq!(quotes, 2, "the name cannot end its own quotes");
    }
}
