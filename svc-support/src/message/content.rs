//! Text and HTML of a message: a missing one is made from the other, and HTML is sanitised. Pure. Apart from `rules.rs`
//! because incoming mail uses it too.

use std::sync::LazyLock;

use ammonia::{Builder, UrlRelative};
use chassis_base::html::escaped;

/// The number of characters of a text, or of its HTML, that are stored.
pub(crate) const MAX_CHARS: usize = 65_535;
/// The limits of HTML that is parsed. The time of parsing can grow with the square of the number of tags.
const MAX_HTML_BYTES: usize = 1 << 20;
const MAX_TAGS: usize = 10_000;

static CLEANER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut builder = Builder::default();
    builder
        // A remote image reveals to its server who reads the message; images inside the mail are among the attachments.
        .rm_tags(["img", "map", "area"])
        .add_clean_content_tags(["title"])
        .url_schemes(["http", "https", "mailto", "tel"].into())
        .url_relative(UrlRelative::Deny)
        .link_rel(Some("noopener noreferrer nofollow"));
    builder
});

/// Both forms of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    pub text: String,
    /// Sanitised; `""` for plain text.
    pub html: String,
}

/// Makes the missing form of a message from the other. At most one of `body` and `html` may be empty. With `plain`, the
/// HTML is dropped.
pub(crate) fn complete(body: &str, html: &str, plain: bool) -> Content {
    let text = if body.trim().is_empty() { text_of(html) } else { cut(body) };
    let html = match (plain, html.trim().is_empty()) {
        (true, _) => String::new(),
        (false, true) => html_of(&text),
        (false, false) => sanitise(html),
    };
    Content { text, html }
}

/// HTML without scripts, styles, forms or remote content; `""` when it exceeds a limit.
pub(crate) fn sanitise(html: &str) -> String {
    if html.len() > MAX_HTML_BYTES || html.bytes().filter(|byte| *byte == b'<').count() > MAX_TAGS {
        return String::new();
    }
    let clean = CLEANER.clean(html).to_string();
    // HTML parsers treat a byte order mark at the start as white space.
    let blank = |c: char| c.is_whitespace() || c == '\u{feff}';
    // A carriage return that was written as a character reference would be parsed as a line feed the next time.
    let clean = clean.replace('\0', "").replace("\r\n", "\n").replace('\r', "\n");
    let clean = clean.trim_matches(blank).to_owned();
    if clean.chars().nth(MAX_CHARS).is_some() { String::new() } else { clean }
}

/// The text of a piece of HTML.
pub(crate) fn text_of(html: &str) -> String {
    let mut end = html.len().min(MAX_HTML_BYTES);
    while !html.is_char_boundary(end) {
        end -= 1;
    }
    cut(&mail_parser::decoders::html::html_to_text(&html[..end]))
}

/// A text as HTML: its paragraphs, with line breaks inside.
pub(crate) fn html_of(text: &str) -> String {
    let mut html = String::new();
    for paragraph in text.replace("\r\n", "\n").split("\n\n").map(|text| text.trim_matches('\n')) {
        if paragraph.trim().is_empty() {
            continue;
        }
        html.push_str("<p>");
        html.push_str(&escaped(paragraph).replace('\n', "<br>"));
        html.push_str("</p>");
    }
    if html.chars().nth(MAX_CHARS).is_some() { String::new() } else { html }
}

/// The part of a text that is stored, without NUL characters, which Postgres does not accept.
pub(crate) fn cut(text: &str) -> String {
    text.trim().chars().filter(|c| *c != '\0').take(MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn content(text: &str, html: &str) -> Content {
        Content { text: text.to_owned(), html: html.to_owned() }
    }

    #[test]
    fn scripts_styles_images_and_other_schemes_are_gone() {
        let html = "<style>p{}</style><p onclick=x()>Hello <img src=https://spy.example/x.png>\
                    <a href='javascript:alert(1)'>a</a> <a href='https://b.example/'>b</a> <a href='/c'>c</a></p>\
                    <script>alert(1)</script><iframe src=//x></iframe>";
        let clean = sanitise(html);
        for gone in ["script", "style", "onclick", "img", "javascript", "iframe", "/c"] {
            assert!(!clean.contains(gone), "{gone} in {clean}");
        }
        assert!(clean.contains("<p>Hello"), "{clean}");
        assert!(clean.contains("href=\"https://b.example/\""), "{clean}");
        assert!(clean.contains("noopener"), "{clean}");
    }

    #[test]
    fn a_line_ends_with_a_line_feed_however_it_was_written() {
        assert_eq!(sanitise("a&#13;b&#13;\nc\r\nd"), "a\nb\nc\nd");
    }

    #[test]
    fn each_form_is_made_of_the_other() {
        let Content { text, html } = complete("A <b> & c\nd\n\ne", "", false);
        assert_eq!(text, "A <b> & c\nd\n\ne");
        assert_eq!(html, "<p>A &lt;b&gt; &amp; c<br>d</p><p>e</p>");
        let Content { text, html } = complete("", "<p>Hello <b>you</b></p>", false);
        assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["Hello", "you"]);
        assert_eq!(html, "<p>Hello <b>you</b></p>");
        assert_eq!(complete("a", "<p>b</p>", false), content("a", "<p>b</p>"));
    }

    #[test]
    fn plain_text_stays_plain() {
        assert_eq!(complete("a", "", true), content("a", ""));
        assert_eq!(complete("", "<p>b</p>", true), content("b", ""));
    }

    #[test]
    fn hostile_html_is_processed_in_bounded_time() {
        for html in ["<div>".repeat(200_000), "<p>".repeat(9_000), "<b><i>".repeat(4_000), "<a".repeat(9_999)]
        {
            let clean = sanitise(&html);
            assert!(clean.chars().count() <= MAX_CHARS);
            text_of(&html);
        }
        assert_eq!(sanitise(&"x".repeat(MAX_CHARS + 1)), "");
        assert_eq!(cut(&"é".repeat(MAX_CHARS + 5)).chars().count(), MAX_CHARS);
    }

    proptest! {
        #[test]
        fn sanitised_html_is_safe_and_sanitising_it_again_changes_nothing(html in "(<[a-z/!]{0,9}[ =\"'a-z:/]{0,20}>?|[^\0]{0,20}|&#?[a-z0-9]{0,5};?){0,20}") {
            let clean = sanitise(&html);
            prop_assert!(!clean.to_lowercase().contains("<script"));
            prop_assert_eq!(sanitise(&clean), clean.clone());
            text_of(&html);
            text_of(&clean);
        }

        #[test]
        fn any_text_is_shown_and_nothing_else(text in any::<String>()) {
            let html = html_of(&text);
            let tags = html.replace("<p>", "").replace("</p>", "").replace("<br>", "");
            prop_assert!(!tags.contains('<'), "{}", html);
            complete(&text, "", false);
            complete("", &text, false);
        }
    }
}
