//! The page at `/`: what this is, and where to go on.

use std::fmt::Write;
use std::sync::LazyLock;

use chassis_base::html::escaped;

use super::super::file::File;
use super::super::html::document;
use super::guides::guides;
use crate::openapi::TITLE;

pub(super) static PAGE: LazyLock<File> = LazyLock::new(|| File::html(page()));

fn page() -> String {
    let mut content = format!(
        "<div class=\"home\">\n<main>\n<h1>{TITLE}</h1>\n\
         <p class=\"lead\">Invoices, clients, deals, tickets, projects and automation for a small business, over HTTP and \
         JSON.</p>\n<ul class=\"tiles\">\n"
    );
    for (path, title, about) in [
        ("/docs", "Reference", "Every operation with its fields, errors and code to copy."),
        ("/problems", "Error codes", "What each code means, and what to do about it."),
        ("/openapi.json", "openapi.json", "The whole API as an OpenAPI 3.1 document, for tools."),
    ] {
        tile(&mut content, path, title, about);
    }
    content.push_str("</ul>\n<h2>Guides</h2>\n<ul class=\"tiles\">\n");
    for guide in guides() {
        tile(&mut content, &format!("/docs/guides/{}", guide.name), guide.title, guide.about);
    }
    content.push_str("</ul>\n</main>\n</div>");
    document(TITLE, "<link rel=\"stylesheet\" href=\"/docs/assets/style.css\">", &content)
}

fn tile(content: &mut String, path: &str, title: &str, about: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(
        content,
        "<li><a href=\"{}\"><strong>{}</strong><span>{}</span></a></li>",
        escaped(path),
        escaped(title),
        escaped(about)
    );
}
