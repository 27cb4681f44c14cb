//! The error page for people without a key, whose link is wrong or whose request fails: plain words, and everything it
//! needs inside it.

use std::fmt::Write;
use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chassis_base::html::escaped;
use http::HeaderValue;
use proto::api::Problem;
use sha2::{Digest, Sha256};

use super::file::NO_CONTENT_POLICY;
use super::html::document;
use super::problems::STYLE;

/// A page, and the content security policy that it needs.
pub struct ErrorPage {
    pub html: String,
    pub policy: HeaderValue,
}

/// `faults` has the details of each field of a form that is not valid.
pub fn error_page(problem: Problem, detail: &str, faults: &[String], request_id: &str) -> ErrorPage {
    let (heading, text) = wording(problem, detail);
    let mut content = format!("<main>\n<h1>{}</h1>\n<p>{}</p>\n", escaped(heading), escaped(text));
    if !faults.is_empty() {
        content.push_str("<ul>\n");
        for fault in faults {
            // Writing to a String cannot fail.
            let _ = writeln!(content, "<li>{}</li>", escaped(fault));
        }
        content.push_str("</ul>\n");
    }
    let _ = write!(
        content,
        "<p class=\"reference\">Reference: <code>{}</code></p>\n</main>",
        escaped(request_id)
    );
    let head = format!("<meta name=\"robots\" content=\"noindex\">\n<style>{STYLE}</style>");
    ErrorPage { html: document(heading, &head, &content), policy: policy().clone() }
}

/// Heading and text, for people who do not use an API.
fn wording(problem: Problem, detail: &str) -> (&'static str, &str) {
    match problem {
        Problem::NotFound => (
            "This page is not here",
            "The link may be incomplete, or what it led to is gone. Check the link, or ask for a new one where you got it from.",
        ),
        Problem::Validation => {
            ("Something is not right yet", "Go back, correct what is listed here, and send it again.")
        }
        Problem::RateLimited => ("One moment, please", detail),
        Problem::Unavailable | Problem::Timeout => {
            ("This does not work right now", "Nothing is wrong with your link. Try again in a moment.")
        }
        Problem::Internal | Problem::Unspecified => (
            "Something went wrong on our side",
            "Nothing is wrong with your link. Try again later; if it happens again, tell us the reference below.",
        ),
        other => (other.info().title, detail),
    }
}

/// The style is part of the page, and the policy allows exactly this style and nothing else.
fn policy() -> &'static HeaderValue {
    static POLICY: OnceLock<HeaderValue> = OnceLock::new();
    POLICY.get_or_init(|| {
        let hash = STANDARD.encode(Sha256::digest(STYLE));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{hash}'; img-src data:; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'"
        );
        // Plain ASCII; if it ever were not, the page goes without its style.
        HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static(NO_CONTENT_POLICY))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_page_is_whole_in_itself_and_cannot_be_given_markup() {
        let page =
            error_page(Problem::Validation, "", &["<b>name</b> is required".to_owned()], "\"><script>");
        assert!(page.html.contains("&lt;b&gt;name&lt;/b&gt; is required"));
        assert!(page.html.contains("&quot;&gt;&lt;script&gt;") && !page.html.contains("<script"));
        assert!(page.html.contains("content=\"noindex\"") && page.html.contains("light dark"));
        assert!(!page.html.contains("://") && !page.html.contains("href=\"/"), "it loads and leads nowhere");
        let style = page.html.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
        let hash = STANDARD.encode(Sha256::digest(style));
        assert!(page.policy.to_str().unwrap().contains(&format!("style-src 'sha256-{hash}'")));
    }

    #[test]
    fn every_problem_has_a_wording() {
        for info in proto::policy::problems() {
            let (heading, text) = wording(info.problem, "What happened.");
            assert!(!heading.is_empty() && !text.is_empty() && !text.contains('`'), "{}", info.code);
        }
    }
}
