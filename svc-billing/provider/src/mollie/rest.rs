//! One HTTP request to Mollie, and the classification of its answer: done, refused, not done, or outcome unknown.

use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use reqwest::{Client, Response, Url, redirect};
use serde::Deserialize;
use serde_json::Value;

use super::settings::Settings;
use crate::{Fault, IdempotencyKey};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Bytes of an answer. A page of 250 payments with all their details stays well below.
const MAX_ANSWER: usize = 4 * 1024 * 1024;
/// Characters kept of the explanation of a refusal.
const MAX_DETAIL: usize = 500;

/// A fault, with the HTTP status if the answer came from Mollie itself.
#[derive(Debug)]
pub struct Failure {
    pub fault: Fault,
    status: Option<StatusCode>,
}

impl Failure {
    /// Mollie does not have the resource, or no longer has it.
    pub fn is_missing(&self) -> bool {
        matches!(self.status, Some(StatusCode::NOT_FOUND | StatusCode::GONE))
    }

    /// Mollie understood the request and refuses it in the current state of the resource.
    pub fn is_unprocessable(&self) -> bool {
        self.status == Some(StatusCode::UNPROCESSABLE_ENTITY)
    }
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        failure.fault
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self { fault, status: None }
    }
}

pub(super) struct Rest {
    client: Client,
    base: String,
    authorization: HeaderValue,
}

impl Rest {
    pub(super) fn new(settings: &Settings) -> Result<Self, String> {
        // Selects the cryptography of the TLS library for the process. An error means that it was selected before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(settings.timeout())
            .redirect(redirect::Policy::none())
            .user_agent(concat!("admin-billing/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| format!("the HTTP client for Mollie cannot be created: {}", chain(&error)))?;
        let base = base(&settings.mollie_api_url)?;
        Ok(Self { client, base, authorization: authorization(settings.mollie_api_key.trim())? })
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.call(Method::GET, path, None, None).await
    }

    pub(super) async fn post(
        &self,
        path: &str,
        key: &IdempotencyKey,
        body: &Value,
    ) -> Result<Value, Failure> {
        self.call(Method::POST, path, Some(key), Some(body)).await
    }

    pub(super) async fn delete(&self, path: &str, key: &IdempotencyKey) -> Result<Value, Failure> {
        self.call(Method::DELETE, path, Some(key), None).await
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        key: Option<&IdempotencyKey>,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        let mut request = self
            .client
            .request(method, format!("{}/{path}", self.base))
            .header(AUTHORIZATION, self.authorization.clone())
            .header(ACCEPT, "application/hal+json");
        if let Some(key) = key {
            request = request.header("Idempotency-Key", header_value(key)?);
        }
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        }
        let mut answer = request.send().await.map_err(no_answer)?;
        let content = read_body(&mut answer).await?;
        classify(answer.status(), answer.headers(), &content)
    }
}

/// The key as a header value; refused if it has characters that a header cannot carry.
fn header_value(key: &IdempotencyKey) -> Result<HeaderValue, Fault> {
    HeaderValue::from_str(&key.0).map_err(|_| Fault::Refused {
        detail: "the key of the request has characters that a header cannot have".to_owned(),
        field: None,
    })
}

async fn read_body(answer: &mut Response) -> Result<Vec<u8>, Fault> {
    let mut content = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(no_answer)? {
        if content.len() + piece.len() > MAX_ANSWER {
            return Err(Fault::OutcomeUnknown {
                detail: format!("the answer has more than {MAX_ANSWER} bytes"),
            });
        }
        content.extend_from_slice(&piece);
    }
    Ok(content)
}

/// The fault of a request without an answer. Without a connection Mollie received nothing; after that it may have
/// carried the request out.
fn no_answer(error: reqwest::Error) -> Fault {
    let error = error.without_url();
    tracing::warn!(error = chain(&error), "Mollie did not answer");
    if error.is_connect() {
        return Fault::Unavailable { detail: "no connection could be made".to_owned(), retry_after: None };
    }
    let detail = if error.is_timeout() { "no answer in time" } else { "the connection broke" };
    Fault::OutcomeUnknown { detail: detail.to_owned() }
}

fn classify(status: StatusCode, headers: &HeaderMap, content: &[u8]) -> Result<Value, Failure> {
    let fault = match status {
        _ if status.is_success() => match serde_json::from_slice(content) {
            Ok(body) => return Ok(body),
            Err(_) => unexpected_status(status),
        },
        StatusCode::TOO_MANY_REQUESTS => {
            Fault::Unavailable { detail: "too many requests".to_owned(), retry_after: retry_after(headers) }
        }
        // All requests fail until the operator replaces the key. Each of them is worth repeating after that.
        StatusCode::UNAUTHORIZED => {
            tracing::error!("Mollie does not accept the key; set MOLLIE_API_KEY to a current one");
            Fault::Unavailable { detail: "the API key is not accepted".to_owned(), retry_after: None }
        }
        // A conflict is a request with the same key that is still in progress, or that resembles a recent one.
        StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT | StatusCode::TOO_EARLY => {
            unexpected_status(status)
        }
        _ if status.is_client_error() => match serde_json::from_slice::<Problem>(content) {
            Ok(problem) => {
                let detail = problem.detail.chars().take(MAX_DETAIL).collect();
                let fault = Fault::Refused { detail, field: problem.field };
                return Err(Failure { fault, status: Some(status) });
            }
            // The body is not Mollie's: a proxy on the way answered.
            Err(_) => unexpected_status(status),
        },
        _ => unexpected_status(status),
    };
    Err(fault.into())
}

/// The error body of Mollie.
#[derive(Deserialize)]
struct Problem {
    detail: String,
    field: Option<String>,
}

fn unexpected_status(status: StatusCode) -> Fault {
    tracing::warn!(status = status.as_u16(), "unexpected answer from Mollie");
    Fault::OutcomeUnknown { detail: format!("the answer was unclear, with status {}", status.as_u16()) }
}

/// The header in seconds; its other form, a date, is ignored.
fn retry_after(headers: &HeaderMap) -> Option<u64> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()
}

fn base(url: &str) -> Result<String, String> {
    let parsed = Url::parse(url.trim()).map_err(|error| format!("MOLLIE_API_URL is not a URL: {error}"))?;
    // The API key can move money, so it is never sent unencrypted over a network.
    let local = matches!(parsed.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
    if parsed.scheme() != "https" && !(parsed.scheme() == "http" && local) {
        return Err("MOLLIE_API_URL must begin with https://, or with http:// on this machine".to_owned());
    }
    if parsed.query().is_some() || parsed.fragment().is_some() {
        return Err("MOLLIE_API_URL must end with the path, for example https://api.mollie.com/v2".to_owned());
    }
    Ok(parsed.as_str().trim_end_matches('/').to_owned())
}

fn authorization(key: &str) -> Result<HeaderValue, String> {
    if !key.starts_with("test_") && !key.starts_with("live_") {
        return Err("MOLLIE_API_KEY must be the API key of a Mollie profile: test_… or live_…".to_owned());
    }
    let mut value = HeaderValue::from_str(&format!("Bearer {key}"))
        .map_err(|_| "MOLLIE_API_KEY has characters that a key cannot have".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_leaves_the_machine_only_encrypted() {
        assert_eq!(base("https://api.mollie.com/v2/").as_deref(), Ok("https://api.mollie.com/v2"));
        assert!(base("http://127.0.0.1:9/v2").is_ok());
        for url in ["http://api.mollie.com/v2", "ftp://127.0.0.1/", "api.mollie.com", "", "https://a/?b"] {
            assert!(base(url).is_err(), "{url}");
        }
    }

    #[test]
    fn only_a_profiles_key_is_a_key() {
        assert!(authorization("test_1").is_ok_and(|value| value.is_sensitive()));
        for key in ["", "access_1", "sk_live_1", "test_\n"] {
            assert!(authorization(key).is_err(), "{key}");
        }
    }

    #[test]
    fn statuses_say_whether_something_was_done() {
        let problem =
            br#"{"status":422,"title":"Unprocessable Entity","detail":"Too high","field":"amount"}"#;
        let of = |status: u16, content: &[u8]| {
            let status = StatusCode::from_u16(status).expect("a status");
            classify(status, &HeaderMap::new(), content).map_err(Fault::from)
        };
        let refused = Fault::Refused { detail: "Too high".to_owned(), field: Some("amount".to_owned()) };
        for status in [400, 403, 404, 405, 410, 415, 422] {
            assert_eq!(of(status, problem), Err(refused.clone()), "{status}");
        }
        for status in [401, 429] {
            assert!(matches!(of(status, problem), Err(Fault::Unavailable { .. })), "{status}");
        }
        for status in [301, 304, 408, 409, 425, 500, 502, 503, 504] {
            assert!(matches!(of(status, problem), Err(Fault::OutcomeUnknown { .. })), "{status}");
        }
        for status in [200, 201, 400, 404, 422] {
            assert!(matches!(of(status, b"<html>"), Err(Fault::OutcomeUnknown { .. })), "{status}");
        }
        assert_eq!(of(200, b"{}"), Ok(serde_json::json!({})));
    }
}
