//! Escapes text for HTML.

/// Escapes text for use between tags and in attribute values.
pub fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            other => html.push(other),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sign_of_markup_is_left() {
        assert_eq!(
            escaped("<a href='x' title=\"y\">é & so on"),
            "&lt;a href=&#39;x&#39; title=&quot;y&quot;&gt;é &amp; so on"
        );
    }
}
