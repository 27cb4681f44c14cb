//! The `OpenAPI` document and the reference page, which shows it with Swagger UI. Its assets come from a crate and are
//! served from here.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderMap, StatusCode};

use super::file::{DAY, File, NO_CONTENT_POLICY};
use crate::openapi;

/// Swagger UI draws its icons from `data:` addresses; scripts and styles come from here only, and so does what
/// try-it-out may ask.
const REFERENCE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What the page uses of Swagger UI's files.
const ASSETS: [&str; 4] =
    ["swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png", "favicon-16x16.png"];

static DOCUMENT: LazyLock<File> = LazyLock::new(|| {
    let document = openapi::printed(&openapi::document(&proto::policy::commented()));
    File::new(document, "application/json", NO_CONTENT_POLICY)
});
static PAGE: LazyLock<File> = LazyLock::new(|| {
    let page = include_str!("reference.html").replace("{{title}}", openapi::TITLE);
    File::new(page, "text/html; charset=utf-8", REFERENCE_POLICY)
});
static FILES: LazyLock<BTreeMap<&'static str, File>> = LazyLock::new(files);

pub(super) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let page = async |headers: HeaderMap| PAGE.answer(&headers);
    Router::new()
        .route("/openapi.json", get(async |headers: HeaderMap| DOCUMENT.answer(&headers)))
        .route("/docs", get(page))
        .route("/docs/", get(page))
        .route(
            "/docs/{*file}",
            get(async |Path(name): Path<String>, headers: HeaderMap| find(&name, &headers)),
        )
}

fn find(name: &str, headers: &HeaderMap) -> Response {
    match FILES.get(name) {
        Some(file) => file.answer(headers),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn files() -> BTreeMap<&'static str, File> {
    let settings = Arc::new(utoipa_swagger_ui::Config::from("/openapi.json"));
    let mut files: BTreeMap<_, _> = ASSETS
        .into_iter()
        .filter_map(|name| {
            let asset = utoipa_swagger_ui::serve(name, Arc::clone(&settings)).ok().flatten()?;
            let file = File::new(asset.bytes.into_owned(), &asset.content_type, NO_CONTENT_POLICY);
            Some((name, file.cached(DAY)))
        })
        .collect();
    let start = include_str!("reference.js");
    files.insert("reference.js", File::new(start, "text/javascript; charset=utf-8", NO_CONTENT_POLICY));
    let style = include_str!("reference.css");
    files.insert("reference.css", File::new(style, "text/css; charset=utf-8", NO_CONTENT_POLICY));
    files
}
