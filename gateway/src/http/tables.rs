//! Lists as tables: a page as CSV or with a JSON object in each line, and all of a list as a stream of either.

use std::fmt::Write;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use chassis_transcode::contract::{EXPORT, Operation};
use chassis_transcode::{Ignored, ResponsePlan, TableFormat};
use http::{HeaderName, HeaderValue, header};

use super::byte_budget::Reservation;
use super::download::{self, Download};
use super::problem::{Refusal, unusable};
use super::response::{Counted, held, tell_ignored_in};

/// What `meta` of the envelope says, for a page that has none.
const META: HeaderName = HeaderName::from_static("x-meta");
/// The most memory that an export takes: a message of the service that is being read, its lines, and the window of the
/// client's connection.
pub(super) const EXPORT_COST: usize = 1 << 20;

/// A page of a list as lines.
pub(super) async fn page(
    operation: &Operation,
    plan: &ResponsePlan,
    answer: &[u8],
    ignored: &Ignored,
    format: TableFormat,
    counted: Counted<'_>,
) -> Result<Response, Refusal> {
    let reserved = counted.reserve(answer.len() * 2).await?;
    let (mut lines, mut meta) = (Vec::with_capacity(answer.len() + 1024), Vec::new());
    plan.put_names(format, &mut lines);
    plan.put_rows(format, answer, &mut lines).map_err(|error| unusable(operation, &error))?;
    plan.render_meta(answer, &mut meta).map_err(|error| unusable(operation, &error))?;
    tell_ignored_in(ignored, &mut meta);
    let mut response = Body::from(held(reserved, lines)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, content_type(format));
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    if let Ok(meta) = HeaderValue::try_from(ascii(&meta)) {
        headers.insert(META, meta);
    }
    Ok(response)
}

/// Every record of a list as a line, in the order of the list.
pub(super) fn export(
    operation: &Operation,
    plan: &ResponsePlan,
    answer: Download,
    format: TableFormat,
    reserved: Reservation,
) -> Result<Response, Refusal> {
    let mut names = Vec::new();
    plan.put_names(format, &mut names);
    let (plan, name) = (plan.clone(), operation.name.clone());
    let lines = move |message: Bytes| {
        let mut lines = std::mem::take(&mut names);
        plan.put_rows(format, &message, &mut lines)
            .inspect_err(|error| tracing::error!(%error, operation = name, "an export cannot be shown"))?;
        Ok(Bytes::from(lines))
    };
    let body = download::lines(answer, lines, reserved).map_err(|error| unusable(operation, &error))?;
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, content_type(format));
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let list = operation.path.trim_end_matches(EXPORT).rsplit('/').next().unwrap_or_default();
    let disposition = format!("attachment; filename=\"{list}.{}\"", format.extension());
    if let Ok(disposition) = HeaderValue::try_from(disposition) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    Ok(response)
}

/// A table has no place for a record within a record.
pub(super) fn refuse_expansion() -> Refusal {
    Refusal::bad_parameter(
        chassis_transcode::EXPAND,
        "can be asked for with JSON only; leave it out, or send `Accept: application/json`",
    )
}

fn content_type(format: TableFormat) -> HeaderValue {
    HeaderValue::from_static(match format {
        TableFormat::Csv => "text/csv; charset=utf-8; header=present",
        TableFormat::Ndjson => "application/x-ndjson",
    })
}

/// JSON whose texts have nothing but ASCII, as it is in a header.
fn ascii(json: &[u8]) -> String {
    let mut escaped = String::with_capacity(json.len());
    for character in String::from_utf8_lossy(json).chars() {
        if character.is_ascii() {
            escaped.push(character);
            continue;
        }
        let mut units = [0; 2];
        for unit in character.encode_utf16(&mut units) {
            // Writing to a String cannot fail.
            let _ = write!(escaped, "\\u{unit:04x}");
        }
    }
    escaped
}
