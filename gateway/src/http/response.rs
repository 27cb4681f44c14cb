//! Responses made from what a service answered: in the envelope, or as the service made them.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use chassis_rpc::call::REPLAY;
use chassis_transcode::contract::Operation;
use chassis_transcode::{Ignored, ResponsePlan};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use prost::Message;
use proto::api::HttpBody;
use tokio::sync::Semaphore;

use super::byte_budget::{ByteBudget, MIN_COUNTED, Owner, Reservation};
use super::conditional;
use super::download::{self, Download};
use super::expand::Expanded;
use super::problem::{Refusal, unusable};
use crate::pages::NO_CONTENT_POLICY;

/// The budget that a response is counted in, and for whom.
#[derive(Clone, Copy)]
pub(super) struct Counted<'a> {
    pub budget: &'a ByteBudget,
    pub owner: Owner,
}

/// A response that waits for its reservation is in memory meanwhile, uncounted. From this size on only
/// [`MAX_WAITING`] wait, and others are refused immediately.
const LARGE: usize = 256 << 10;
const MAX_WAITING: usize = 8;
static WAITING: Semaphore = Semaphore::const_new(MAX_WAITING);

impl Counted<'_> {
    /// Reserves this number of bytes; a small response needs no reservation.
    pub(super) async fn reserve(&self, bytes: usize) -> Result<Option<Reservation>, Refusal> {
        let Self { budget, owner } = *self;
        if bytes < MIN_COUNTED {
            return Ok(None);
        }
        let exceeded = match budget.reserve(owner, bytes) {
            Ok(reserved) => return Ok(Some(reserved)),
            Err(exceeded) => exceeded,
        };
        let _permit = match (bytes >= LARGE).then(|| WAITING.try_acquire()) {
            Some(Err(_)) => return Err(exceeded.into()),
            permit => permit,
        };
        Ok(Some(budget.reserve_or_wait(owner, bytes).await?))
    }
}

/// `{"data": …, "meta": …}`. `ignored` are names of the request, which `meta` tells; `path` has the raw values of the path's
/// variables.
pub(super) async fn envelope(
    operation: &Operation,
    plan: &ResponsePlan,
    answer: &tonic::Response<Bytes>,
    ignored: &Ignored,
    expanded: Option<&Expanded<'_>>,
    path: &[(&str, &str)],
    counted: Counted<'_>,
) -> Result<Response, Refusal> {
    let wire = answer.get_ref();
    // While it is rendered, both forms of it are in memory; `held` then counts the JSON alone.
    let length = wire.len() + expanded.map_or(0, Expanded::len);
    let reserved = counted.reserve(length * 2).await?;
    let mut json = Vec::with_capacity(length + length / 4 + 256);
    let rendered = match expanded {
        Some(expanded) => plan.render_records(wire, &mut json, |place, out| expanded.write(place, out)),
        None => plan.render(wire, &mut json),
    };
    rendered.map_err(|error| unusable(operation, &error))?;
    tell_ignored(ignored, &mut json);
    let has_body = plan.has_body();
    let body = if has_body { Body::from(held(reserved, json)) } else { Body::empty() };
    let mut response = body.into_response();
    *response.status_mut() = success(operation);
    let headers = response.headers_mut();
    if has_body {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    mark_replay(is_replay(answer), headers);
    tag(plan, wire, headers);
    let location = plan.data_id(wire).and_then(|id| operation.location_of(path, id));
    if let Some(location) = location.and_then(|location| HeaderValue::try_from(location).ok()) {
        headers.insert(header::LOCATION, location);
    }
    Ok(response)
}

/// Adds `meta.ignored` to an envelope, if there is one and any name was ignored.
pub(super) fn tell_ignored(ignored: &Ignored, envelope: &mut Vec<u8>) {
    if !ignored.is_empty() && !envelope.is_empty() {
        add_to_meta(envelope, b"ignored", |out| ignored.write(out));
    }
}

/// The same for a `meta` by itself.
pub(super) fn tell_ignored_in(ignored: &Ignored, meta: &mut Vec<u8>) {
    if !ignored.is_empty() {
        add_last(meta, b"ignored", |out| ignored.write(out));
    }
}

/// Adds a field to `meta`, which is the last field of every envelope.
pub(super) fn add_to_meta(envelope: &mut Vec<u8>, name: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
    envelope.pop();
    add_last(envelope, name, write);
    envelope.push(b'}');
}

/// Adds a field to a JSON object.
fn add_last(object: &mut Vec<u8>, name: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
    object.pop();
    if !object.ends_with(b"{") {
        object.push(b',');
    }
    object.push(b'"');
    object.extend_from_slice(name);
    object.extend_from_slice(b"\":");
    write(object);
    object.push(b'}');
}

/// The answer to a reader who has the record as it is now.
pub(super) fn not_modified(plan: &ResponsePlan, wire: &[u8]) -> Response {
    let mut response = StatusCode::NOT_MODIFIED.into_response();
    tag(plan, wire, response.headers_mut());
    response
}

/// The version of the record that the response shows.
fn tag(plan: &ResponsePlan, wire: &[u8], headers: &mut HeaderMap) {
    if let Some(etag) = plan.data_version(wire).and_then(conditional::etag) {
        headers.insert(header::ETAG, etag);
    }
}

/// The content, counted until it is written.
pub(super) fn held(reserved: Option<Reservation>, content: Vec<u8>) -> Bytes {
    let Some(mut reserved) = reserved else { return content.into() };
    reserved.set(content.capacity());
    reserved.attach(content)
}

/// A page or a redirect, as the service made it.
pub(super) async fn http_body(
    operation: &Operation,
    answer: tonic::Response<Bytes>,
    counted: Counted<'_>,
) -> Result<Response, Refusal> {
    let reserved = counted.reserve(answer.get_ref().len()).await?;
    let replay = is_replay(&answer);
    let mut body = HttpBody::decode(answer.into_inner()).map_err(|error| unusable(operation, &error))?;
    let data = std::mem::take(&mut body.data);
    let (status, headers) = head(operation, body, data.is_empty(), replay)?;
    let data = match reserved {
        Some(reserved) => reserved.attach(data),
        None => data,
    };
    let content = if has_content(status) { Body::from(data) } else { Body::empty() };
    Ok((status, headers, content).into_response())
}

/// A file, streamed to the client.
pub(super) fn download(
    operation: &Operation,
    answer: tonic::Response<Download>,
    reserved: Reservation,
) -> Result<Response, Refusal> {
    let replay = is_replay(&answer);
    let Download { first, rest } = answer.into_inner();
    let mut body = HttpBody::decode(first).map_err(|error| unusable(operation, &error))?;
    let (data, length) = (std::mem::take(&mut body.data), body.length);
    let (status, mut headers) = head(operation, body, data.is_empty() && length == 0, replay)?;
    if !has_content(status) {
        return Ok((status, headers).into_response());
    }
    // A service of an older release does not stream, and sends no length.
    if length > 0 || data.is_empty() {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    Ok((status, headers, download::body(data, length, rest, reserved)).into_response())
}

/// Whether a response with this status may have content.
fn has_content(status: StatusCode) -> bool {
    !matches!(status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED)
}

/// Status and headers as the service set them. Headers that it leaves out have the strictest default.
fn head(
    operation: &Operation,
    body: HttpBody,
    is_empty: bool,
    replay: bool,
) -> Result<(StatusCode, HeaderMap), Refusal> {
    let mut headers = HeaderMap::with_capacity(10);
    mark_replay(replay, &mut headers);
    let status = match u16::try_from(body.status) {
        Ok(0) => success(operation),
        // An interim status (1xx) cannot be the status of a response.
        Ok(code @ 200..=599) => StatusCode::from_u16(code).map_err(|error| unusable(operation, &error))?,
        _ => return Err(unusable(operation, &format_args!("the status {}", body.status))),
    };
    let default_type = if is_empty || !has_content(status) { "" } else { "application/octet-stream" };
    for (name, value, default) in [
        (header::CONTENT_TYPE, body.content_type, default_type),
        (header::CONTENT_DISPOSITION, body.disposition, ""),
        (header::CACHE_CONTROL, body.cache_control, "no-store"),
        (header::CONTENT_SECURITY_POLICY, body.content_security_policy, NO_CONTENT_POLICY),
        (header::LOCATION, body.location, ""),
        (header::X_CONTENT_TYPE_OPTIONS, String::new(), "nosniff"),
        (header::REFERRER_POLICY, String::new(), "no-referrer"),
    ] {
        insert(&mut headers, name, value, default).map_err(|error| unusable(operation, &error))?;
    }
    Ok((status, headers))
}

/// Inserts the value, or else the default; nothing when both are empty.
fn insert(
    headers: &mut HeaderMap,
    name: HeaderName,
    value: String,
    default: &'static str,
) -> Result<(), String> {
    if !value.is_empty() {
        let value = HeaderValue::try_from(value).map_err(|_| format!("{name} has no usable value"))?;
        headers.insert(name, value);
    } else if !default.is_empty() {
        headers.insert(name, HeaderValue::from_static(default));
    }
    Ok(())
}

pub(super) fn success(operation: &Operation) -> StatusCode {
    let code = u16::try_from(operation.policy.success).ok();
    code.and_then(|code| StatusCode::from_u16(code).ok()).unwrap_or(StatusCode::OK)
}

pub(super) fn is_replay<T>(answer: &tonic::Response<T>) -> bool {
    answer.metadata().contains_key(REPLAY)
}

pub(super) fn mark_replay(replay: bool, headers: &mut HeaderMap) {
    if replay {
        headers.insert("x-idempotent-replay", HeaderValue::from_static("true"));
    }
}
