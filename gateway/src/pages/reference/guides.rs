//! The guides: Markdown files whose first line is the title and whose second paragraph says what they are about.

use serde_json::json;

/// Name and text, in the order in which they are read.
pub(super) const GUIDES: [(&str, &str); 6] = [
    ("first-invoice", include_str!("guides/first-invoice.md")),
    ("errors", include_str!("guides/errors.md")),
    ("idempotency", include_str!("guides/idempotency.md")),
    ("sync", include_str!("guides/sync.md")),
    ("webhooks", include_str!("guides/webhooks.md")),
    ("going-live", include_str!("guides/going-live.md")),
];

pub(super) struct Guide<'a> {
    pub name: &'a str,
    pub title: &'a str,
    pub about: &'a str,
    pub text: &'a str,
}

pub(super) fn guides() -> impl Iterator<Item = Guide<'static>> {
    GUIDES.iter().map(|(name, text)| {
        let mut parts = text.splitn(3, "\n\n");
        let mut next = || parts.next().unwrap_or_default().trim();
        let (title, about) = (next().trim_start_matches("# "), next());
        Guide { name, title, about, text: next() }
    })
}

/// All of them as JSON, for the page.
pub(super) fn listed() -> String {
    let guides = guides().map(
        |guide| json!({"name": guide.name, "title": guide.title, "about": guide.about, "text": guide.text}),
    );
    json!(guides.collect::<Vec<_>>()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_guide_has_a_title_and_says_what_it_is_about() {
        for guide in guides() {
            assert!(!guide.title.is_empty() && !guide.title.contains('\n'), "{}", guide.name);
            assert!(guide.about.ends_with('.') && !guide.about.contains('\n'), "{}", guide.name);
            assert!(guide.text.contains("\n## "), "{}", guide.name);
        }
    }
}
