//! Text and HTML of a message: each made of the other where one is missing, and HTML of others made safe. Pure.

use std::sync::LazyLock;

use ammonia::{Builder, UrlRelative};
use chassis::html::escaped;

/// Characters of a text or of an HTML text that are kept.
pub const MOST: usize = 65_535;
/// Bytes of HTML, and tags in it, that are looked at. The time that reading takes can grow with the square of the tags.
const MOST_HTML: usize = 1 << 20;
const MOST_TAGS: usize = 10_000;

static CLEANER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut builder = Builder::default();
    builder
        // A picture from elsewhere tells its owner who reads; one that came along is among the attachments.
        .rm_tags(["img", "map", "area"])
        .add_clean_content_tags(["title"])
        .url_schemes(["http", "https", "mailto", "tel"].into())
        .url_relative(UrlRelative::Deny)
        .link_rel(Some("noopener noreferrer nofollow"));
    builder
});

/// Both forms of a message. At most one of `body` and `html` may be empty; `plain` keeps no HTML.
pub fn both(body: &str, html: &str, plain: bool) -> (String, String) {
    let text = if body.trim().is_empty() { text_of(html) } else { cut(body) };
    let html = match (plain, html.trim().is_empty()) {
        (true, _) => String::new(),
        (false, true) => html_of(&text),
        (false, false) => sanitise(html),
    };
    (text, html)
}

/// HTML that can do nothing but be read; `""` when there is too much of it.
pub fn sanitise(html: &str) -> String {
    if html.len() > MOST_HTML || html.bytes().filter(|byte| *byte == b'<').count() > MOST_TAGS {
        return String::new();
    }
    let clean = CLEANER.clean(html).to_string();
    // A mark of the order of bytes is white space to readers of HTML, at the start.
    let blank = |letter: char| letter.is_whitespace() || letter == '\u{feff}';
    // A carriage return that was written as a number would be read as a line feed the next time.
    let clean = clean.replace('\0', "").replace("\r\n", "\n").replace('\r', "\n");
    let clean = clean.trim_matches(blank).to_owned();
    if clean.chars().nth(MOST).is_some() { String::new() } else { clean }
}

/// The text of an HTML text.
pub fn text_of(html: &str) -> String {
    let mut end = html.len().min(MOST_HTML);
    while !html.is_char_boundary(end) {
        end -= 1;
    }
    cut(&mail_parser::decoders::html::html_to_text(&html[..end]))
}

/// A text as HTML: a paragraph for each, line breaks inside.
pub fn html_of(text: &str) -> String {
    let mut html = String::new();
    for paragraph in text.replace("\r\n", "\n").split("\n\n").map(|text| text.trim_matches('\n')) {
        if paragraph.trim().is_empty() {
            continue;
        }
        html.push_str("<p>");
        html.push_str(&escaped(paragraph).replace('\n', "<br>"));
        html.push_str("</p>");
    }
    if html.chars().nth(MOST).is_some() { String::new() } else { html }
}

/// As much of a text as is kept, without what the database does not take.
pub fn cut(text: &str) -> String {
    text.trim().chars().filter(|letter| *letter != '\0').take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        let (text, html) = both("A <b> & c\nd\n\ne", "", false);
        assert_eq!(text, "A <b> & c\nd\n\ne");
        assert_eq!(html, "<p>A &lt;b&gt; &amp; c<br>d</p><p>e</p>");
        let (text, html) = both("", "<p>Hello <b>you</b></p>", false);
        assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["Hello", "you"]);
        assert_eq!(html, "<p>Hello <b>you</b></p>");
        assert_eq!(both("a", "<p>b</p>", false), ("a".into(), "<p>b</p>".into()));
    }

    #[test]
    fn plain_text_stays_plain() {
        assert_eq!(both("a", "", true), ("a".into(), String::new()));
        assert_eq!(both("", "<p>b</p>", true), ("b".into(), String::new()));
    }

    #[test]
    fn hostile_html_is_not_worked_on_for_long() {
        for html in ["<div>".repeat(200_000), "<p>".repeat(9_000), "<b><i>".repeat(4_000), "<a".repeat(9_999)]
        {
            let clean = sanitise(&html);
            assert!(clean.chars().count() <= MOST);
            text_of(&html);
        }
        assert_eq!(sanitise(&"x".repeat(MOST + 1)), "");
        assert_eq!(cut(&"é".repeat(MOST + 5)).chars().count(), MOST);
    }

    proptest! {
        #[test]
        fn any_html_becomes_safe_and_stays_as_it_is(html in "(<[a-z/!]{0,9}[ =\"'a-z:/]{0,20}>?|[^\0]{0,20}|&#?[a-z0-9]{0,5};?){0,20}") {
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
            both(&text, "", false);
            both("", &text, false);
        }
    }
}
