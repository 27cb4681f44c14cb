//! Answers of services as they go out: in the envelope, or as they are.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use chassis::call::REPLAY;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use prost::Message;
use proto::api::{HttpBody, Problem};

use super::problem::Refusal;
use crate::contract::Operation;
use crate::pages::NO_CONTENT_POLICY;
use crate::transcode::ResponsePlan;

/// `{"data": …, "meta": …}`. `path` has the raw values of the path's variables.
pub fn envelope(
    operation: &Operation,
    plan: &ResponsePlan,
    answer: &tonic::Response<Bytes>,
    path: &[(&str, &str)],
) -> Result<Response, Refusal> {
    let wire = answer.get_ref();
    let mut json = Vec::with_capacity(wire.len() * 2 + 256);
    plan.render(wire, &mut json).map_err(|error| unusable(operation, &error))?;
    let has_body = plan.has_body();
    let mut response =
        if has_body { Body::from(json).into_response() } else { Body::empty().into_response() };
    *response.status_mut() = success(operation);
    let headers = response.headers_mut();
    if has_body {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    mark_replay(answer, headers);
    let location = plan.data_id(wire).and_then(|id| operation.location_of(path, id));
    if let Some(location) = location.and_then(|location| HeaderValue::try_from(location).ok()) {
        headers.insert(header::LOCATION, location);
    }
    Ok(response)
}

/// A page, a file or a redirect, as the service made it. What it leaves open is answered on the safe side.
pub fn http_body(operation: &Operation, answer: tonic::Response<Bytes>) -> Result<Response, Refusal> {
    let mut headers = HeaderMap::with_capacity(8);
    mark_replay(&answer, &mut headers);
    let body = HttpBody::decode(answer.into_inner()).map_err(|error| unusable(operation, &error))?;
    let status = match u16::try_from(body.status) {
        Ok(0) => success(operation),
        // An interim status (1xx) is none of an answer.
        Ok(code @ 200..=599) => StatusCode::from_u16(code).map_err(|error| unusable(operation, &error))?,
        _ => return Err(unusable(operation, &format_args!("the status {}", body.status))),
    };
    let carries =
        !matches!(status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED);
    let fallback = if body.data.is_empty() || !carries { "" } else { "application/octet-stream" };
    for (name, value, otherwise) in [
        (header::CONTENT_TYPE, body.content_type, fallback),
        (header::CONTENT_DISPOSITION, body.disposition, ""),
        (header::CACHE_CONTROL, body.cache_control, "no-store"),
        (header::CONTENT_SECURITY_POLICY, body.content_security_policy, NO_CONTENT_POLICY),
        (header::LOCATION, body.location, ""),
        (header::X_CONTENT_TYPE_OPTIONS, String::new(), "nosniff"),
        (header::REFERRER_POLICY, String::new(), "no-referrer"),
    ] {
        insert(&mut headers, name, value, otherwise).map_err(|error| unusable(operation, &error))?;
    }
    let content = if carries { Body::from(body.data) } else { Body::empty() };
    Ok((status, headers, content).into_response())
}

/// Nothing where there is neither a value nor something to put in its place.
fn insert(
    headers: &mut HeaderMap,
    name: HeaderName,
    value: String,
    otherwise: &'static str,
) -> Result<(), String> {
    if !value.is_empty() {
        let value = HeaderValue::try_from(value).map_err(|_| format!("{name} has no usable value"))?;
        headers.insert(name, value);
    } else if !otherwise.is_empty() {
        headers.insert(name, HeaderValue::from_static(otherwise));
    }
    Ok(())
}

fn success(operation: &Operation) -> StatusCode {
    let code = u16::try_from(operation.policy.success).ok();
    code.and_then(|code| StatusCode::from_u16(code).ok()).unwrap_or(StatusCode::OK)
}

fn mark_replay(answer: &tonic::Response<Bytes>, headers: &mut HeaderMap) {
    if answer.metadata().contains_key(REPLAY) {
        headers.insert("x-idempotent-replay", HeaderValue::from_static("true"));
    }
}

/// Always a fault on our side: the service and the gateway are built from one contract.
fn unusable(operation: &Operation, error: &dyn std::fmt::Display) -> Refusal {
    tracing::error!(%error, operation = operation.name, "an answer cannot be shown");
    Refusal::new(Problem::Internal, "Something went wrong on our side.")
}
