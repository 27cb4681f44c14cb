//! What people read in a browser or fetch without a key: the `OpenAPI` document, the reference page and the pages that
//! explain each error code. All of it is made once, when it is first asked for, and comes from this process: no page
//! loads anything from another host. Also the error page for people, in their language. Independent of keys, accounts and
//! services.

mod error_page;
mod file;
mod html;
mod language;
mod problems;
mod reference;

#[cfg(test)]
mod tests;

use axum::Router;

pub use error_page::{ErrorPage, error_page, error_page_in};
pub use file::NO_CONTENT_POLICY;
pub use language::Language;
pub use problems::{problem_page, problems_page};

/// `/`, `/openapi.json`, `/docs` and what is below it, `/problems` and `/problems/{code}`, for GET and HEAD.
pub fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    reference::router().merge(problems::router())
}
