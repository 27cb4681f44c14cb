//! What every page has: its frame, and text that cannot become markup.

use std::fmt::Write;

use chassis_base::html::escaped;

use super::language::Language;

/// A whole page in English. `head` and `body` are HTML, the title is text.
pub(super) fn document(title: &str, head: &str, body: &str) -> String {
    document_in(Language::English, title, head, body)
}

pub(super) fn document_in(language: Language, title: &str, head: &str, body: &str) -> String {
    let (language, title) = (language.tag(), escaped(title));
    format!(
        "<!doctype html>\n<html lang=\"{language}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n{head}\n\
         <link rel=\"icon\" href=\"data:,\">\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )
}

/// Text as HTML, with what stands between backticks as code. An unpaired backtick stays as it is.
pub(super) fn inline(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    let mut html = String::new();
    for (index, part) in parts.iter().enumerate() {
        let is_code = index % 2 == 1;
        if is_code && index + 1 < parts.len() {
            let _ = write!(html, "<code>{}</code>", escaped(part));
        } else {
            if is_code {
                html.push('`');
            }
            html.push_str(&escaped(part));
        }
    }
    html
}
