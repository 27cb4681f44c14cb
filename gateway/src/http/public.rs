//! What is special about requests without a key: they come from browsers of people who were sent a link. So a refusal is
//! a page they can read, no other site may post for them or read the answers, and no search engine keeps the link.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use proto::api::Problem;

use super::accept::prefers_page;
use super::problem::{ProblemSummary, Refusal};
use super::request_id::RequestId;
use crate::pages::{ErrorPage, error_page};

const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Marks a response that pages of other sites may not read.
#[derive(Clone, Copy)]
pub(super) struct OwnSiteOnly;

/// Completes every response of a public path, refusals included.
pub(super) async fn finish(RequestId(id): RequestId, request: Request, next: Next) -> Response {
    let wants_page = prefers_page(request.headers());
    let mut response = next.run(request).await;
    if let Some(summary) = response.extensions_mut().remove::<Arc<ProblemSummary>>() {
        response.headers_mut().append(header::VARY, HeaderValue::from_static("Accept"));
        if wants_page {
            response = as_page(response, &summary, &id);
        }
    }
    response.extensions_mut().insert(OwnSiteOnly);
    let headers = response.headers_mut();
    headers.insert(ROBOTS, HeaderValue::from_static("noindex"));
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// The same refusal as a page. Its status and its other headers stay.
fn as_page(response: Response, summary: &ProblemSummary, request_id: &str) -> Response {
    let page = error_page(summary.problem, &summary.detail, &summary.faults, request_id);
    shown_as(response, page)
}

/// The same response with a page in place of its body.
pub(super) fn shown_as(response: Response, page: ErrorPage) -> Response {
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    parts.headers.insert(header::CONTENT_SECURITY_POLICY, page.policy);
    Response::from_parts(parts, Body::from(page.html))
}

/// Refuses a write that a page of another site makes a browser send. `Sec-Fetch-Site` says where a request comes from.
/// Programs other than browsers do not send it, and no page can make them act in another person's name.
pub(super) fn refuse_cross_site(method: &Method, headers: &HeaderMap) -> Result<(), Refusal> {
    let own = |site: &HeaderValue| matches!(site.as_bytes(), b"same-origin" | b"none");
    if method.is_safe() || headers.get_all(FETCH_SITE).iter().all(own) {
        return Ok(());
    }
    let detail = "This was sent from a page of another site. Open the link itself and send it from there.";
    Err(Refusal::new(Problem::CrossSite, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name.clone(), value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_post_from_another_site_is_refused() {
        let refused =
            |method: Method, sites: &[&str]| refuse_cross_site(&method, &with(&FETCH_SITE, sites)).is_err();
        assert!(refused(Method::POST, &["cross-site"]) && refused(Method::POST, &["same-site"]));
        assert!(refused(Method::POST, &["same-origin", "cross-site"]) && refused(Method::DELETE, &["?"]));
        assert!(!refused(Method::POST, &["same-origin"]) && !refused(Method::POST, &["none"]));
        assert!(!refused(Method::POST, &[]) && !refused(Method::GET, &["cross-site"]));
    }
}
