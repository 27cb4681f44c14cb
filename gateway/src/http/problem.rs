//! Error bodies: `application/problem+json`, from our own refusals and from what a service answered.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use chassis_base::error::status::MAY_HAVE_HAPPENED;
use chassis_rpc::peer::is_transport;
use chassis_transcode::Location;
use chassis_transcode::contract::Operation;
use http::{HeaderName, HeaderValue, StatusCode, header};
use prost::Message;
use proto::api::{Fault, Problem};
use proto::google::rpc;
use serde::Serialize;
use tonic::{Code, Status};

/// Advice for the caller of a request that may or may not have been carried out.
const IN_DOUBT: &str = "The request may have been carried out all the same: look whether it is there, or repeat it \
                        with the Idempotency-Key that it had.";

/// Why a request is not carried out. Becomes a response together with the id of the request.
#[derive(Debug)]
pub struct Refusal {
    pub problem: Problem,
    pub detail: String,
    pub errors: Vec<Entry>,
    pub data: BTreeMap<String, String>,
    /// Whether the request may have been carried out nevertheless.
    pub may_have_happened: bool,
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

/// One fault, with its location in the request as the integrator sent it.
#[derive(Debug, Serialize)]
pub struct Entry {
    #[serde(flatten)]
    pub location: FaultLocation,
    pub code: String,
    pub detail: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultLocation {
    Pointer(String),
    Parameter(String),
    Header(&'static str),
}

impl From<Location> for FaultLocation {
    fn from(location: Location) -> Self {
        match location {
            Location::Pointer(pointer) => Self::Pointer(pointer),
            Location::Parameter(name) => Self::Parameter(name),
        }
    }
}

impl Refusal {
    pub fn new(problem: Problem, detail: impl Into<String>) -> Self {
        let mut refusal = Self {
            problem,
            detail: detail.into(),
            errors: Vec::new(),
            data: BTreeMap::new(),
            may_have_happened: false,
            headers: Vec::new(),
        };
        if matches!(problem, Problem::Unavailable | Problem::Timeout) {
            refusal.headers.push((header::RETRY_AFTER, HeaderValue::from_static("1")));
        }
        refusal
    }

    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.retain(|(have, _)| *have != name);
        self.headers.push((name, value));
        self
    }

    pub fn bad_header(name: &'static str, detail: &str) -> Self {
        let entry = Entry {
            location: FaultLocation::Header(name),
            code: Fault::BadHeader.code(),
            detail: detail.to_owned(),
        };
        Self { errors: vec![entry], ..Self::new(Problem::Validation, "1 header is not valid.") }
    }

    /// A parameter of the query that cannot be used like this.
    pub fn bad_parameter(name: &str, detail: &str) -> Self {
        let entry = Entry {
            location: FaultLocation::Parameter(name.to_owned()),
            code: Fault::NotAllowed.code(),
            detail: format!("{name} {detail}"),
        };
        Self { errors: vec![entry], ..Self::new(Problem::Validation, "1 parameter is not valid.") }
    }

    /// The refusal that a service answered. `locate` says where the integrator sent a field of the request message.
    pub fn from_status(status: &Status, locate: impl Fn(&str) -> Location) -> Self {
        let details = Details::of(status);
        let problem = details.info.as_ref().and_then(|info| Problem::from_code(&info.reason));
        let problem = problem.unwrap_or_else(|| by_code(status));
        // A status without details does not come from our own code. Its text may reveal internals, so it is not shown.
        let detail = if details.info.is_some() { status.message() } else { problem.info().title };
        let mut refusal = Self::new(problem, detail);
        for violation in details.violations {
            let location = locate(&violation.field).into();
            refusal.errors.push(Entry { location, code: violation.reason, detail: violation.description });
        }
        if let Some(seconds) = details.retry_seconds {
            refusal = refusal.with_header(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        refusal.data = details.info.map(|info| info.metadata.into_iter().collect()).unwrap_or_default();
        let flagged = refusal.data.remove(MAY_HAVE_HAPPENED).is_some();
        if flagged || status.metadata().contains_key(MAY_HAVE_HAPPENED) {
            refusal.in_doubt()
        } else {
            refusal
        }
    }

    /// Says that the request may have been carried out, where the answer would otherwise mean that nothing has happened.
    #[must_use]
    pub fn in_doubt(mut self) -> Self {
        if matches!(self.problem, Problem::Unavailable | Problem::Timeout) {
            self.may_have_happened = true;
            self.detail.push(' ');
            self.detail.push_str(IN_DOUBT);
        }
        self
    }

    /// The whole response.
    pub fn into_response(self, request_id: &str) -> Response {
        let info = self.problem.info();
        let body = ProblemBody {
            kind: format!("/problems/{}", info.code),
            title: info.title,
            status: info.status,
            code: info.code,
            detail: &self.detail,
            errors: &self.errors,
            may_have_happened: self.may_have_happened,
            data: &self.data,
            meta: Meta { request_id },
        };
        let text = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = Body::from(text).into_response();
        *response.status_mut() =
            StatusCode::from_u16(info.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.extend(self.headers);
        let faults = self.errors.into_iter().map(|entry| entry.detail).collect();
        let summary = ProblemSummary { problem: self.problem, detail: self.detail, faults };
        response.extensions_mut().insert(Arc::new(summary));
        response
    }
}

/// Always a defect on our side: the service and the gateway are built from one contract.
pub(super) fn unusable(operation: &Operation, error: &dyn std::fmt::Display) -> Refusal {
    tracing::error!(%error, operation = operation.name, "the answer of a service cannot be used");
    Refusal::new(Problem::Internal, "Something went wrong on our side.")
}

/// What a refusal says, in the extensions of its response, for layers that show it in another form.
#[derive(Debug)]
pub struct ProblemSummary {
    pub problem: Problem,
    pub detail: String,
    /// What is wrong with each field.
    pub faults: Vec<String>,
}

#[derive(Serialize)]
struct ProblemBody<'a> {
    #[serde(rename = "type")]
    kind: String,
    title: &'a str,
    status: u16,
    code: &'a str,
    detail: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [Entry],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    may_have_happened: bool,
    data: &'a BTreeMap<String, String>,
    meta: Meta<'a>,
}

#[derive(Serialize)]
struct Meta<'a> {
    request_id: &'a str,
}

#[derive(Default)]
struct Details {
    info: Option<rpc::ErrorInfo>,
    violations: Vec<rpc::bad_request::FieldViolation>,
    retry_seconds: Option<i64>,
}

impl Details {
    fn of(status: &Status) -> Self {
        let mut found = Self::default();
        for detail in rpc::Status::decode(status.details()).map(|status| status.details).unwrap_or_default() {
            let value = detail.value.as_slice();
            match detail.type_url.rsplit('/').next() {
                Some("google.rpc.ErrorInfo") => found.info = rpc::ErrorInfo::decode(value).ok(),
                Some("google.rpc.BadRequest") => {
                    found.violations =
                        rpc::BadRequest::decode(value).map(|bad| bad.field_violations).unwrap_or_default();
                }
                Some("google.rpc.RetryInfo") => {
                    let delay = rpc::RetryInfo::decode(value).ok().and_then(|info| info.retry_delay);
                    found.retry_seconds = delay.map(|delay| delay.seconds.max(1));
                }
                _ => {}
            }
        }
        found
    }
}

/// The problem of a status that does not come from our own code, but from the transport or a library.
fn by_code(status: &Status) -> Problem {
    match status.code() {
        Code::DeadlineExceeded => Problem::Timeout,
        Code::NotFound => Problem::NotFound,
        // Unimplemented: a replica of the release before does not know the call yet.
        Code::Unavailable | Code::Cancelled | Code::ResourceExhausted | Code::Unimplemented => {
            Problem::Unavailable
        }
        _ if is_transport(status) => Problem::Unavailable,
        _ => {
            tracing::error!(code = ?status.code(), message = status.message(), "unexpected status from a service");
            Problem::Internal
        }
    }
}
