//! What is special about requests without a key: they come from browsers of people who were sent a link. So a refusal is
//! a page they can read, no other site may post for them or read the answers, and no search engine keeps the link.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use proto::api::Problem;

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

/// Whether `Accept` puts a page above JSON. Programs that accept anything get JSON.
pub(super) fn prefers_page(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let accept = lines.collect::<Vec<_>>().join(",");
    let json = weight(&accept, "application", "problem+json").max(weight(&accept, "application", "json"));
    weight(&accept, "text", "html") > json
}

/// The weight of a media type (RFC 9110, 12.5.1), in thousandths: that of the range that names it most closely.
fn weight(accept: &str, kind: &str, subtype: &str) -> u16 {
    let mut found = (0, 0);
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let (range_kind, range_subtype) =
            parts.next().and_then(|range| range.split_once('/')).unwrap_or_default();
        let closeness = match (range_kind, range_subtype) {
            ("*", "*") => 1,
            (same, "*") if same.eq_ignore_ascii_case(kind) => 2,
            (same, sub) if same.eq_ignore_ascii_case(kind) && sub.eq_ignore_ascii_case(subtype) => 3,
            _ => continue,
        };
        let quality = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        if closeness > found.0 {
            found = (closeness, quality.map_or(1000, thousandths));
        }
    }
    found.1
}

/// `0.8` is 800. What is not a weight counts as 0.
fn thousandths(text: &str) -> u16 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{fraction:0<3}");
    match digits.parse::<u16>() {
        Ok(value) if whole.len() == 1 && fraction.len() <= 3 && value <= 1000 => value,
        _ => 0,
    }
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
    fn browsers_get_pages_and_programs_get_json() {
        let prefers = |values: &[&str]| prefers_page(&with(&header::ACCEPT, values));
        assert!(prefers(&["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"]));
        assert!(
            prefers(&["text/html"])
                && prefers(&["text/*"])
                && prefers(&["application/json;q=0.5", "TEXT/HTML"])
        );
        assert!(prefers(&["application/json; q=0.899, text/html; q=0.9"]));
        for accept in [
            "",
            "*/*",
            "application/json",
            "text/html;q=0",
            "text/html;q=0.5, application/json",
            "text/html, */*",
            "application/problem+json, text/html",
            "text/html;q=2",
            "text/html;q=.9",
            "text/html;q=0.1234",
            ",;/,",
        ] {
            assert!(!prefers(&[accept]), "{accept}");
        }
        assert!(!prefers(&[]));
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
