//! The reference: a page of our own that shows the `OpenAPI` document, guides, and the events. Its files are part of the
//! program and are served as they are written; the page draws itself from `/openapi.json`.

mod guides;
mod home;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::file::{File, NO_CONTENT_POLICY};
use crate::openapi;

/// Scripts and styles come from here only, and so does what a request that is tried may ask.
const REFERENCE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const JSON: &str = "application/json";

macro_rules! assets {
    ($($name:literal: $kind:expr),* $(,)?) => { [$(($name, $kind, include_str!($name))),*] };
}

const ASSETS: [(&str, &str, &str); 20] = assets![
    "code.js": SCRIPT,
    "document.js": SCRIPT,
    "dom.js": SCRIPT,
    "fields.js": SCRIPT,
    "icon.svg": "image/svg+xml",
    "key.js": SCRIPT,
    "main.js": SCRIPT,
    "markdown.js": SCRIPT,
    "navigation.js": SCRIPT,
    "operation.js": SCRIPT,
    "pages.js": SCRIPT,
    "request.js": SCRIPT,
    "samples.js": SCRIPT,
    "samples_card.js": SCRIPT,
    "search.js": SCRIPT,
    "searchbox.js": SCRIPT,
    "style.css": STYLE,
    "theme.js": SCRIPT,
    "theme_switch.js": SCRIPT,
    "try.js": SCRIPT,
];

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| openapi::document(&proto::policy::commented()));
static DOCUMENT_FILE: LazyLock<File> =
    LazyLock::new(|| File::new(openapi::printed(&DOCUMENT), JSON, NO_CONTENT_POLICY));
static PAGE: LazyLock<File> = LazyLock::new(|| {
    // All at once, rather than each when a module before it names it.
    let modules = ASSETS
        .iter()
        .filter(|(name, kind, _)| *kind == SCRIPT && *name != "theme.js")
        .fold(String::new(), |links, (name, ..)| {
            links + &format!("<link rel=\"modulepreload\" href=\"/docs/assets/{name}\">\n")
        });
    let page =
        include_str!("page.html").replace("{{title}}", openapi::TITLE).replace("{{modules}}", &modules);
    File::new(page, "text/html; charset=utf-8", REFERENCE_POLICY)
});
static FILES: LazyLock<BTreeMap<&'static str, File>> = LazyLock::new(|| {
    let mut files: BTreeMap<_, _> =
        ASSETS.map(|(name, kind, text)| (name, File::new(text, kind, NO_CONTENT_POLICY))).into();
    files.insert("guides.json", File::new(guides::listed(), JSON, NO_CONTENT_POLICY));
    files
});
/// The pages that the reference can show, as paths below `/docs/`. The page itself says of any other that it is not there.
static PLACES: LazyLock<BTreeSet<String>> = LazyLock::new(|| places(&DOCUMENT));

pub(super) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let page = async |headers: HeaderMap| PAGE.answer(&headers);
    Router::new()
        .route("/", get(async |headers: HeaderMap| home::PAGE.answer(&headers)))
        .route("/openapi.json", get(async |headers: HeaderMap| DOCUMENT_FILE.answer(&headers)))
        .route("/docs", get(page))
        .route("/docs/", get(page))
        .route(
            "/docs/{*path}",
            get(async |Path(path): Path<String>, headers: HeaderMap| find(&path, &headers)),
        )
}

fn find(path: &str, headers: &HeaderMap) -> Response {
    if let Some(name) = path.strip_prefix("assets/") {
        return match FILES.get(name) {
            Some(file) => file.answer(headers),
            None => StatusCode::NOT_FOUND.into_response(),
        };
    }
    let is_known = PLACES.contains(path.trim_end_matches('/'));
    if is_known { PAGE.answer(headers) } else { PAGE.answer_with(StatusCode::NOT_FOUND, headers) }
}

fn places(document: &Value) -> BTreeSet<String> {
    let operations = document["paths"].as_object().into_iter().flatten();
    let operations = operations.flat_map(|(_, item)| item.as_object().into_iter().flatten());
    let operations = operations
        .filter_map(|(_, operation)| Some(format!("operations/{}", operation["operationId"].as_str()?)));
    let areas = document["tags"].as_array().into_iter().flatten();
    let areas = areas.filter_map(|tag| Some(format!("areas/{}", tag["name"].as_str()?)));
    let guides = guides::GUIDES.iter().map(|(name, _)| format!("guides/{name}"));
    let events = events(document).into_iter().map(|name| format!("events/{name}"));
    operations.chain(areas).chain(guides).chain(events).chain(["events".to_owned()]).collect()
}

/// The names of the events.
fn events(document: &Value) -> Vec<String> {
    document["webhooks"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
}
