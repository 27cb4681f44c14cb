//! The one handler of all operations. The order of its checks is part of the contract: key, rate limit, scope,
//! size and type, idempotency key, body; ids and state are the service's.

use std::net::IpAddr;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use chassis::call::{CARRIED_FAULTS, HEAD_ONLY, IDEMPOTENCY_KEY, REQUEST_ID};
use chassis::mesh::is_idempotency_key;
use chassis::{telemetry, token};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request};
use prost::Message;
use proto::api::{CarriedFaults, Problem};
use tonic::metadata::MetadataMap;

use super::admit::{Admitted, admit};
use super::problem::Refusal;
use super::upstream::{self, Outgoing};
use super::{App, answer, body};
use crate::contract::{Answer, Operation, variable};
use crate::transcode::Bound;

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
    let answer = match admit(app, operation, &parts, from, &mut limit_headers).await {
        Ok(admitted) => {
            let call = Incoming { app, operation, parts, admitted, id };
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

/// A request that was let in.
struct Incoming<'a> {
    app: &'a App,
    operation: &'a Operation,
    parts: Parts,
    admitted: Admitted,
    id: &'a str,
}

impl Incoming<'_> {
    async fn answer(&self, body: Body) -> Result<Response, Refusal> {
        let body = body::read(self.operation, &self.parts.headers, body).await?;
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
        match &self.operation.response {
            Answer::Envelope(plan) => answer::envelope(self.operation, plan, &answer, &path),
            Answer::HttpBody => answer::http_body(self.operation, answer),
        }
    }

    /// Honoured on every POST with an API key, ignored on other methods and where there is no account to keep it for.
    fn idempotency_key(&self) -> Result<Option<&HeaderValue>, Refusal> {
        let honoured = self.parts.method == Method::POST && !self.operation.is_public();
        let key = self.parts.headers.get(IDEMPOTENCY_KEY).filter(|_| honoured);
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
        let mut headers = HeaderMap::with_capacity(7);
        headers.insert(token::HEADER, self.admitted.context_token(self.app, &self.operation.peer));
        // Made or checked by the request-id layer.
        if let Ok(id) = HeaderValue::try_from(self.id) {
            headers.insert(REQUEST_ID, id);
        }
        if let Some(key) = key {
            headers.insert(IDEMPOTENCY_KEY, key.clone());
        }
        if self.parts.method == Method::HEAD {
            headers.insert(HEAD_ONLY, HeaderValue::from_static("true"));
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
}
