//! `Dry-Run: true`: a write is carried out by its service and undone. The answer is the one that would come, and says in
//! `meta.dry_run` what would have come of it.

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use chassis_rpc::call::REHEARSAL;
use chassis_transcode::contract::Operation;
use chassis_transcode::{Ignored, ResponsePlan};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use prost::Message;
use proto::api::{Problem, Rehearsal};
use proto::automation::flow_service_client::FlowServiceClient;
use proto::automation::{ListTriggeredFlowsRequest, TriggeredFlow};
use serde::Serialize;

use super::app::App;
use super::problem::{Refusal, unusable};
use super::response::{Counted, add_to_meta, held, is_replay, mark_replay, success, tell_ignored};
use crate::keys::Caller;
use crate::runtime::NAME;

const HEADER: HeaderName = HeaderName::from_static("dry-run");
/// The service that knows which flows events start.
const AUTOMATION: &str = "automation";
/// How long it may take for that.
const FLOWS_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether a write is to be undone. Refused where that is not possible.
pub(super) fn is_asked(operation: &Operation, method: &Method, headers: &HeaderMap) -> Result<bool, Refusal> {
    let mut values = headers.get_all(&HEADER).iter().map(|value| value.as_bytes().to_ascii_lowercase());
    let Some(value) = values.next().filter(|_| !matches!(*method, Method::GET | Method::HEAD)) else {
        return Ok(false);
    };
    let is_unclear = values.any(|other| other != value);
    match value.as_slice() {
        _ if is_unclear => Err(Refusal::bad_header("Dry-Run", "Dry-Run must come once")),
        b"false" => Ok(false),
        b"true" if operation.is_public() || operation.envelope().is_none() => Err(unsupported()),
        b"true" if operation.policy.cannot_rehearse => {
            let detail = "This operation talks to somebody outside, which cannot be undone, or is several in one. \
                          Send it without Dry-Run.";
            Err(Refusal::new(Problem::CannotRehearse, detail))
        }
        b"true" => Ok(true),
        _ => Err(Refusal::bad_header("Dry-Run", "Dry-Run must be true or false")),
    }
}

pub(super) fn unsupported() -> Refusal {
    Refusal::new(Problem::CannotRehearse, "This operation cannot be tried without effect.")
}

/// `meta.dry_run`.
#[derive(Serialize)]
struct Shown<'a> {
    changes: Vec<ShownChange<'a>>,
    events: Vec<&'a str>,
    flows: Vec<ShownFlow<'a>>,
    /// Only there when there are more changes or events than are named.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
}

#[derive(Serialize)]
struct ShownChange<'a> {
    kind: &'a str,
    id: &'a str,
    change: &'a str,
}

#[derive(Serialize)]
struct ShownFlow<'a> {
    id: &'a str,
    name: &'a str,
}

/// The answer that would come, with what would have come of it. One that would have no body has `data: null`.
pub(super) async fn answer(
    app: &App,
    operation: &Operation,
    plan: &ResponsePlan,
    answer: &tonic::Response<Bytes>,
    ignored: &Ignored,
    caller: &Caller,
    counted: Counted<'_>,
) -> Result<Response, Refusal> {
    let reserved = counted.reserve(answer.get_ref().len() * 2).await?;
    let encoded = answer.metadata().get_bin(REHEARSAL).and_then(|value| value.to_bytes().ok());
    let rehearsal = encoded.and_then(|bytes| Rehearsal::decode(bytes).ok());
    // An operation that does not write in a transaction has nothing to undo, and nothing was done either.
    let rehearsal = rehearsal.unwrap_or_default();
    let flows = triggered(app, caller, &rehearsal).await;
    let shown = Shown {
        changes: rehearsal
            .changes
            .iter()
            .map(|it| ShownChange { kind: &it.kind, id: &it.id, change: &it.change })
            .collect(),
        events: rehearsal.events.iter().map(|it| it.r#type.as_str()).collect(),
        flows: flows.iter().map(|it| ShownFlow { id: &it.id, name: &it.name }).collect(),
        cut: rehearsal.cut,
    };
    let mut json = Vec::new();
    plan.render(answer.get_ref(), &mut json).map_err(|error| unusable(operation, &error))?;
    let shown = serde_json::to_vec(&shown).map_err(|error| unusable(operation, &error))?;
    let mut response = Body::from(held(reserved, with_meta(json, ignored, &shown))).into_response();
    let status = success(operation);
    *response.status_mut() = if status == StatusCode::NO_CONTENT { StatusCode::OK } else { status };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(HEADER, HeaderValue::from_static("true"));
    mark_replay(is_replay(answer), headers);
    Ok(response)
}

/// Adds what `meta` says besides.
fn with_meta(mut envelope: Vec<u8>, ignored: &Ignored, dry_run: &[u8]) -> Vec<u8> {
    if envelope.is_empty() {
        envelope.extend_from_slice(b"{\"data\":null,\"meta\":{}}");
    }
    tell_ignored(ignored, &mut envelope);
    add_to_meta(&mut envelope, b"dry_run", |out| out.extend_from_slice(dry_run));
    envelope
}

/// The flows that the events would have started. What automation cannot say now is left out: it is no part of the write.
async fn triggered(app: &App, caller: &Caller, rehearsal: &Rehearsal) -> Vec<TriggeredFlow> {
    let types: Vec<String> = rehearsal.events.iter().map(|event| event.r#type.clone()).collect();
    let Some(peer) = app.runtime.peers.get(AUTOMATION).filter(|_| !types.is_empty()) else {
        return Vec::new();
    };
    let now = app.runtime.clock.now();
    let message = ListTriggeredFlowsRequest { types };
    let Ok(mut request) = app.runtime.mesh_request(AUTOMATION, &caller.account, NAME, now, message) else {
        return Vec::new();
    };
    request.set_timeout(FLOWS_TIMEOUT);
    match FlowServiceClient::new(peer.channel()).list_triggered_flows(request).await {
        Ok(answer) => answer.into_inner().flows,
        Err(status) => {
            tracing::warn!(%status, "automation did not say which flows events start");
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_have_come_is_in_the_meta_of_every_envelope() {
        let none = Ignored::default();
        let shown = |envelope: &str| String::from_utf8(with_meta(envelope.into(), &none, b"{}")).unwrap();
        assert_eq!(shown(r#"{"data":{},"meta":{}}"#), r#"{"data":{},"meta":{"dry_run":{}}}"#);
        assert_eq!(
            shown(r#"{"data":[],"meta":{"total":1}}"#),
            r#"{"data":[],"meta":{"total":1,"dry_run":{}}}"#
        );
        assert_eq!(shown(""), r#"{"data":null,"meta":{"dry_run":{}}}"#);
    }
}
