//! The body of a request: its size, its type, and its bytes, as JSON, or unchanged, with their signature if they have one.

use axum::body::{Body, HttpBody as _};
use bytes::{Bytes, BytesMut};
use chassis_transcode::contract::Operation;
use chassis_transcode::form_as_json;
use http::{HeaderMap, HeaderName, Method, header};
use http_body_util::{BodyExt, Limited};
use prost::Message;
use proto::api::{Problem, SignedBody};

use super::byte_budget::{MIN_COUNTED, Reservation};
use super::problem::Refusal;

/// Largest body of a request.
pub const MAX_BODY: usize = 1 << 20;
/// Longest signature. A longer one counts as missing.
const MAX_SIGNATURE: usize = 1024;

/// The body as `RequestPlan::bind` takes it, if the operation takes one: as JSON, unless it is signed. A public POST may
/// also be a form, which is what a page sends. `reserved` counts the memory that the body takes.
pub(super) async fn read(
    operation: &Operation,
    headers: &HeaderMap,
    body: Body,
    reserved: &mut Reservation,
) -> Result<Option<Bytes>, Refusal> {
    if !operation.request.takes_body() {
        return Ok(unexpected(operation, headers, body, reserved).await);
    }
    let body = bounded(headers, body, reserved).await?;
    if let Some(name) = &operation.signature {
        return Ok(Some(signed(headers, name, body)));
    }
    if operation.request.takes_raw_body() {
        return taken(&operation.policy.takes, headers, body).map(Some);
    }
    if body.is_empty() {
        return Ok(Some(Bytes::from_static(b"{}")));
    }
    let takes_forms = operation.is_public() && operation.method == Method::POST;
    let kind = media_type(headers);
    if is_json(kind) {
        return Ok(Some(body));
    }
    if takes_forms && kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        let json = form_as_json(&body);
        return json
            .map(|json| Some(json.into()))
            .map_err(|malformed| Refusal::new(Problem::Malformed, malformed.detail));
    }
    let detail = if takes_forms {
        "Send a form (`application/x-www-form-urlencoded`) or JSON (`application/json`)."
    } else {
        "Send the body as JSON, with the header `Content-Type: application/json`."
    };
    Err(Refusal::new(Problem::UnsupportedMediaType, detail))
}

/// A body that is passed on unchanged, if it is of one of these types.
fn taken(types: &[String], headers: &HeaderMap, body: Bytes) -> Result<Bytes, Refusal> {
    let kind = media_type(headers);
    if body.is_empty() || types.iter().any(|one| kind.eq_ignore_ascii_case(one)) {
        return Ok(body);
    }
    let detail = format!("Send the body with one of these in `Content-Type`: {}.", types.join(", "));
    Err(Refusal::new(Problem::UnsupportedMediaType, detail))
}

/// A body of any content type: the service interprets it, once it has checked the signature. A header that comes several
/// times, as while secrets are rotated, is joined with commas (RFC 9110, 5.3).
fn signed(headers: &HeaderMap, name: &HeaderName, data: Bytes) -> Bytes {
    let signatures = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    let mut signature = signatures.collect::<Vec<_>>().join(", ");
    if signature.len() > MAX_SIGNATURE {
        signature.clear();
    }
    SignedBody { signature, data }.encode_to_vec().into()
}

/// A body that the operation does not take. It has no effect, and is read only because the answer tells that; what cannot be told is
/// not read.
async fn unexpected(
    operation: &Operation,
    headers: &HeaderMap,
    body: Body,
    reserved: &mut Reservation,
) -> Option<Bytes> {
    let is_told = !operation.is_public() && operation.method != Method::GET && is_json(media_type(headers));
    if !is_told || body.is_end_stream() {
        return None;
    }
    bounded(headers, body, reserved).await.ok().filter(|body| !body.is_empty())
}

async fn bounded(headers: &HeaderMap, body: Body, reserved: &mut Reservation) -> Result<Bytes, Refusal> {
    let too_large =
        || Refusal::new(Problem::TooLarge, format!("The body must have at most {MAX_BODY} bytes."));
    let length = headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > MAX_BODY) {
        return Err(too_large());
    }
    let (mut body, mut read) = (Limited::new(body, MAX_BODY), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) if error.is::<http_body_util::LengthLimitError>() => return Err(too_large()),
            Err(_) => return Err(Refusal::new(Problem::Malformed, "The body ended early.")),
        };
        let Ok(data) = frame.into_data() else { continue };
        // Counted as it arrives and not by Content-Length: bytes that are announced and never sent take no budget.
        // This does not wait for the budget, because requests that are half read would wait for each other.
        if read.len() + data.len() > MIN_COUNTED {
            reserved.grow(data.len())?;
        }
        read.extend_from_slice(&data);
    }
    Ok(read.freeze())
}

/// The media type without its parameters.
pub(super) fn media_type(headers: &HeaderMap) -> &str {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}

/// `application/json` or any `+json`.
fn is_json(kind: &str) -> bool {
    kind.eq_ignore_ascii_case("application/json")
        || kind.rsplit_once('+').is_some_and(|(_, suffix)| suffix.eq_ignore_ascii_case("json"))
}
