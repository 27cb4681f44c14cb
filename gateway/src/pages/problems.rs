//! The pages that explain the error codes: an index and one page for each code.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::response::Response;
use axum::routing::get;
use chassis_base::html::escaped;
use http::{HeaderMap, StatusCode};
use proto::policy::{self, ProblemInfo};

use super::file::{File, NO_CONTENT_POLICY};
use super::html::{document, inline};
use crate::openapi::{self, TITLE, example_problem_body};

/// The look of pages that are read rather than used.
pub(super) const STYLE: &str = include_str!("problems.css");

static INDEX: LazyLock<File> = LazyLock::new(|| File::html(problems_page()));
static NOT_FOUND: LazyLock<File> = LazyLock::new(|| File::html(not_found_page()));
static STYLE_FILE: LazyLock<File> =
    LazyLock::new(|| File::new(STYLE, "text/css; charset=utf-8", NO_CONTENT_POLICY));
/// The pages, by code.
static PAGES: LazyLock<BTreeMap<&'static str, File>> =
    LazyLock::new(|| policy::problems().iter().map(|info| (info.code, File::html(page_of(info)))).collect());

pub(super) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let page = async |Path(code): Path<String>, headers: HeaderMap| -> Response {
        match PAGES.get(code.as_str()) {
            Some(page) => page.answer(&headers),
            None => NOT_FOUND.answer_with(StatusCode::NOT_FOUND, &headers),
        }
    };
    Router::new()
        .route("/problems", get(async |headers: HeaderMap| INDEX.answer(&headers)))
        .route("/problems/style.css", get(async |headers: HeaderMap| STYLE_FILE.answer(&headers)))
        .route("/problems/{code}", get(page))
}

/// The page about one code as HTML; `None` for an unknown code.
pub fn problem_page(code: &str) -> Option<String> {
    policy::problems().iter().find(|info| info.code == code).map(page_of)
}

fn page_of(info: &ProblemInfo) -> String {
    let body = serde_json::to_string_pretty(&example_problem_body(info)).unwrap_or_default();
    let content = format!(
        "<p class=\"status\"><span>{status}</span> <code>{code}</code></p>\n<h1>{title}</h1>\n{text}\
         <h2>Example</h2>\n<pre tabindex=\"0\" aria-label=\"Example of the error body\"><code>{body}</code></pre>\n",
        status = info.status,
        code = escaped(info.code),
        title = escaped(info.title),
        text = paragraphs(info.explanation),
        body = escaped(&body),
    );
    layout(info.title, &content)
}

/// The list of all codes as HTML: of errors, and of the faults inside a `validation` error.
pub fn problems_page() -> String {
    let mut content = String::from(
        "<h1>Errors</h1>\n<p>An error body has a stable <code>code</code>; decide by it. Each code has a page of its own.</p>\n\
         <table>\n\
         <thead><tr><th scope=\"col\">Status</th><th scope=\"col\">Code</th><th scope=\"col\">Meaning</th></tr></thead>\n<tbody>\n",
    );
    let mut infos: Vec<&ProblemInfo> = policy::problems().iter().collect();
    infos.sort_by_key(|info| info.status);
    for info in infos {
        let (status, code, title) = (info.status, escaped(info.code), escaped(info.title));
        // On a narrow screen a long code may break after its underscores.
        let shown = code.replace('_', "_<wbr>");
        // Writing to a String cannot fail.
        let _ = writeln!(
            content,
            "<tr><td>{status}</td><td><a href=\"/problems/{code}\"><code>{shown}</code></a></td><td>{title}</td></tr>"
        );
    }
    content.push_str(
        "</tbody></table>\n<h2>Faults of a field</h2>\n\
         <p>A <a href=\"/problems/validation\"><code>validation</code></a> error lists every fault in \
         <code>errors</code>, each with one of these codes.</p>\n<dl>\n",
    );
    for fault in openapi::faults(&policy::commented()) {
        let _ = writeln!(
            content,
            "<dt><code>{}</code></dt><dd>{}</dd>",
            escaped(&fault.code),
            inline(&fault.text)
        );
    }
    content.push_str("</dl>\n");
    layout("Errors", &content)
}

fn not_found_page() -> String {
    layout(
        "No such error code",
        "<h1>No such error code</h1>\n<p>The list of all codes is one click away.</p>\n",
    )
}

fn layout(title: &str, content: &str) -> String {
    document(
        &format!("{title}: {TITLE}"),
        "<link rel=\"stylesheet\" href=\"/problems/style.css\">",
        &format!(
            "<header><p>{TITLE}</p><nav aria-label=\"Pages\"><a href=\"/problems\">All errors</a> \
             <a href=\"/docs\">Reference</a></nav></header>\n<main>\n{content}</main>"
        ),
    )
}

/// The paragraphs of a comment as HTML.
fn paragraphs(comment: &str) -> String {
    let mut html = String::new();
    for paragraph in comment.split("\n\n") {
        let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = writeln!(html, "<p>{}</p>", inline(&line));
    }
    html
}
