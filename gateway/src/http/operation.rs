//! The one handler of all public operations. The order of its checks is part of the contract: key, rate limit, scope,
//! size and type, idempotency key, body; ids and state are the service's.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use chassis::call::{CARRIED_FAULTS, IDEMPOTENCY_KEY, REPLAY, REQUEST_ID};
use chassis::mesh::is_idempotency_key;
use chassis::{telemetry, token};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use prost::Message;
use proto::api::{Access, CarriedFaults, Problem, RateClass};
use tonic::metadata::MetadataMap;

use super::App;
use super::problem::Refusal;
use super::upstream::{self, Outgoing};
use crate::contract::{Operation, variable};
use crate::keys::{AuthError, Caller};
use crate::limits::Decision;
use crate::transcode::Bound;

/// Largest body of a request.
const MAX_BODY: usize = 1 << 20;

/// Handles one request of an operation. Refusals of the caller's making keep the rate-limit headers.
pub async fn handle(
    app: &App,
    operation: &Operation,
    request: Request<Body>,
    id: &str,
    from: IpAddr,
) -> Response {
    let (parts, body) = request.into_parts();
    let mut limit_headers = HeaderMap::new();
    let answer = match admit(app, operation, &parts.headers, from, &mut limit_headers).await {
        Ok(caller) => {
            let call = Incoming { app, operation, parts, caller, id };
            match tokio::time::timeout(app.deadline, call.answer(body)).await {
                Ok(answer) => answer,
                Err(_) => Err(Refusal::new(Problem::Timeout, "The request took too long.")),
            }
        }
        Err(refusal) => Err(refusal),
    };
    let mut response = answer.unwrap_or_else(|refusal| refusal.into_response(id));
    response.headers_mut().extend(limit_headers);
    response
}

/// Key, rate limit, scope.
async fn admit(
    app: &App,
    operation: &Operation,
    headers: &HeaderMap,
    from: IpAddr,
    limit_headers: &mut HeaderMap,
) -> Result<Option<Arc<Caller>>, Refusal> {
    if operation.policy.access() == Access::Public {
        return Ok(None);
    }
    let caller = authenticate(app, headers, from).await?;
    let decision = match operation.policy.rate() {
        RateClass::Exact30Per60Seconds => {
            let now = app.runtime.clock.now();
            Some(
                app.limits
                    .exact
                    .check(&app.runtime.db, &caller, now)
                    .await
                    .map_err(|error| database_away(&error))?,
            )
        }
        RateClass::Unspecified => app.limits.key.check(&caller),
    };
    if let Some(decision) = decision {
        decision.write_headers(limit_headers);
        if !decision.allowed {
            return Err(too_many(&decision));
        }
    }
    let scope = &operation.policy.scope;
    if scope != "any" && !caller.has_scope(scope) {
        let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
        let refusal = Refusal::new(
            Problem::InsufficientScope,
            format!("This API key lacks the scope {scope}. Make a key that has it."),
        );
        return Err(refusal.with_header(
            header::WWW_AUTHENTICATE,
            HeaderValue::try_from(challenge).unwrap_or(HeaderValue::from_static("Bearer")),
        ));
    }
    Ok(Some(caller))
}

async fn authenticate(app: &App, headers: &HeaderMap, from: IpAddr) -> Result<Arc<Caller>, Refusal> {
    if let Some(decision) = app.limits.failed_auth.blocked(from) {
        return Err(too_many(&decision));
    }
    let key = headers.get(header::AUTHORIZATION).and_then(|value| bearer(value.to_str().ok()?));
    let answer = match key {
        Some(key) => app.keys.authenticate(key).await,
        None => Err(AuthError::Refused),
    };
    answer.map_err(|error| match error {
        AuthError::Refused => {
            app.limits.failed_auth.record_failure(from);
            let detail = "Send a valid API key in the header `Authorization: Bearer <key>`.";
            Refusal::new(Problem::Unauthenticated, detail)
                .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
        }
        AuthError::Unavailable(error) => database_away(&error),
    })
}

/// The scheme is case-insensitive.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

fn database_away(error: &chassis::Error) -> Refusal {
    tracing::warn!(%error, "keys or limits cannot be read");
    Refusal::new(
        Problem::Unavailable,
        "The service cannot check API keys right now. Repeat the request in a moment.",
    )
}

fn too_many(decision: &Decision) -> Refusal {
    let seconds = decision.retry_after_seconds;
    Refusal::new(Problem::RateLimited, format!("Too many requests. Wait {seconds} s and try again."))
        .with_header(header::RETRY_AFTER, HeaderValue::from(seconds))
}

/// A request that was let in.
struct Incoming<'a> {
    app: &'a App,
    operation: &'a Operation,
    parts: Parts,
    caller: Option<Arc<Caller>>,
    id: &'a str,
}

impl Incoming<'_> {
    async fn answer(&self, body: Body) -> Result<Response, Refusal> {
        let body = self.read_body(body).await?;
        let key = self.idempotency_key()?;
        let path = self.path_values();
        let bound = self
            .operation
            .request
            .bind(&path, self.parts.uri.query(), body.as_deref())
            .map_err(|malformed| Refusal::new(Problem::Malformed, malformed.detail))?;
        let peer = self.app.runtime.peers.get(&self.operation.peer).ok_or_else(|| {
            tracing::error!(peer = self.operation.peer, "PEERS names no address for this service");
            Refusal::new(Problem::Unavailable, "This part of the service is not running.")
        })?;
        let outgoing = self.outgoing(&bound, key)?;
        let answer = upstream::call(peer, &self.app.retry_budget, &outgoing).await;
        let answer = answer.map_err(|status| {
            Refusal::from_status(&status, |pointer| self.operation.request.locate(&bound, pointer))
        })?;
        self.respond(&answer, &path)
    }

    async fn read_body(&self, body: Body) -> Result<Option<Bytes>, Refusal> {
        if !self.operation.request.takes_body() {
            return Ok(None);
        }
        let too_large =
            || Refusal::new(Problem::TooLarge, format!("The body must have at most {MAX_BODY} bytes."));
        let length = self
            .parts
            .headers
            .get(header::CONTENT_LENGTH)
            .and_then(|v| v.to_str().ok()?.parse::<usize>().ok());
        if length.is_some_and(|length| length > MAX_BODY) {
            return Err(too_large());
        }
        let body = match Limited::new(body, MAX_BODY).collect().await {
            Ok(collected) => collected.to_bytes(),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => return Err(too_large()),
            Err(_) => return Err(Refusal::new(Problem::Malformed, "The body ended early.")),
        };
        if body.is_empty() {
            return Ok(Some(Bytes::from_static(b"{}")));
        }
        if !is_json(&self.parts.headers) {
            let detail = "Send the body as JSON, with the header `Content-Type: application/json`.";
            return Err(Refusal::new(Problem::UnsupportedMediaType, detail));
        }
        Ok(Some(body))
    }

    /// Honoured on every POST, ignored on other methods.
    fn idempotency_key(&self) -> Result<Option<&HeaderValue>, Refusal> {
        let key = self.parts.headers.get(IDEMPOTENCY_KEY).filter(|_| self.parts.method == Method::POST);
        match key {
            Some(key) if !is_idempotency_key(key.as_bytes()) => Err(Refusal::bad_header(
                "Idempotency-Key",
                "Idempotency-Key must have 1 to 255 visible ASCII characters",
            )),
            key => Ok(key),
        }
    }

    /// The values of the path's variables as they were sent: the router has matched the shape already.
    fn path_values(&self) -> Vec<(&str, &str)> {
        let template = self.operation.path.split('/');
        let variables = template.zip(self.parts.uri.path().split('/'));
        variables.filter_map(|(name, value)| Some((variable(name)?, value))).collect()
    }

    fn outgoing(&self, bound: &Bound, key: Option<&HeaderValue>) -> Result<Outgoing, Refusal> {
        let mut headers = HeaderMap::with_capacity(6);
        if let Some(caller) = &self.caller {
            headers.insert(token::HEADER, caller.context_token());
        }
        // Made or checked by the request-id layer.
        if let Ok(id) = HeaderValue::try_from(self.id) {
            headers.insert(REQUEST_ID, id);
        }
        if let Some(key) = key {
            headers.insert(IDEMPOTENCY_KEY, key.clone());
        }
        if !bound.faults.is_empty() {
            let carried = CarriedFaults::from(bound.faults.clone()).encode_to_vec();
            let value = HeaderValue::try_from(STANDARD_NO_PAD.encode(carried));
            headers.insert(
                CARRIED_FAULTS,
                value.map_err(|_| Refusal::new(Problem::Internal, "A fault was lost."))?,
            );
        }
        telemetry::pass_trace(&self.parts.headers, &mut headers);
        Ok(Outgoing {
            path: self.operation.grpc_path.clone(),
            message: Bytes::copy_from_slice(&bound.message),
            metadata: MetadataMap::from_headers(headers),
            timeout: self.app.deadline.saturating_sub(Duration::from_millis(50)),
            repeatable: self.parts.method == Method::GET
                || self.parts.method == Method::HEAD
                || key.is_some(),
        })
    }

    fn respond(&self, answer: &tonic::Response<Bytes>, path: &[(&str, &str)]) -> Result<Response, Refusal> {
        let wire = answer.get_ref();
        let plan = &self.operation.response;
        let mut json = Vec::with_capacity(wire.len() * 2 + 256);
        plan.render(wire, &mut json).map_err(|error| {
            tracing::error!(%error, operation = self.operation.name, "an answer cannot be shown");
            Refusal::new(Problem::Internal, "Something went wrong on our side.")
        })?;
        let has_body = plan.has_body();
        let mut response =
            if has_body { Body::from(json).into_response() } else { Body::empty().into_response() };
        let status = u16::try_from(self.operation.policy.success)
            .ok()
            .and_then(|code| StatusCode::from_u16(code).ok());
        *response.status_mut() = status.unwrap_or(StatusCode::OK);
        let headers = response.headers_mut();
        if has_body {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if answer.metadata().contains_key(REPLAY) {
            headers.insert("x-idempotent-replay", HeaderValue::from_static("true"));
        }
        let location = plan.data_id(wire).and_then(|id| self.operation.location_of(path, id));
        if let Some(location) = location.and_then(|location| HeaderValue::try_from(location).ok()) {
            headers.insert(header::LOCATION, location);
        }
        Ok(response)
    }
}

/// `application/json` or any `+json`, with or without parameters.
fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
        || essence.rsplit_once('+').is_some_and(|(_, suffix)| suffix.eq_ignore_ascii_case("json"))
}
