//! Converts errors into gRPC statuses and reads them. Details are `google.rpc` messages.

use std::borrow::Cow;
use std::time::Duration;

use prost::Message;
use proto::Faults;
use proto::api::Problem;
use proto::google::rpc;
use tonic::{Code, Status};

#[cfg(feature = "sqlx")]
use super::database;
use super::{Error, RecordRef};

/// The domain of `ErrorInfo`.
const DOMAIN: &str = "admin.api";
/// The entry of `ErrorInfo` that says that the request may have been carried out although the response is an error. The
/// next two name the record that it changes.
pub const MAY_HAVE_HAPPENED: &str = "may_have_happened";
const RECORD_KIND: &str = "record_kind";
const RECORD_ID: &str = "record_id";
/// The most characters of a stored explanation.
const MAX_EXPLANATION: usize = 1000;

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(faults) => invalid(&faults),
            Error::Problem { problem, detail, metadata } => of_problem(problem, &detail, metadata, None),
            #[cfg(feature = "sqlx")]
            Error::Database(error) => of_database(&error),
            Error::Peer(status) => *status,
            Error::LeaseLost => unavailable("Another process has taken this work over."),
            Error::Raced => {
                unavailable("Too many requests change the same thing. Repeat the request in a moment.")
            }
            Error::InDoubt(record) => in_doubt(&unavailable("The database was lost."), record),
            Error::Internal(cause) => {
                tracing::error!(cause, "internal error");
                internal()
            }
        }
    }
}

#[cfg(feature = "sqlx")]
fn of_database(error: &sqlx::Error) -> Status {
    if database::is_temporary(error) {
        tracing::warn!(error = %error, "the database is busy or unreachable");
        unavailable("The database is busy. Repeat the request in a moment.")
    } else {
        tracing::error!(error = %error, "the database refused a statement");
        internal()
    }
}

/// Adds to a status that the request may have been carried out, and on which record.
pub fn in_doubt(status: &Status, record: Option<RecordRef>) -> Status {
    let mut whole = rpc::Status::decode(status.details()).unwrap_or_default();
    let is_info = |detail: &&mut prost_types::Any| detail.type_url.ends_with("/google.rpc.ErrorInfo");
    let Some(detail) = whole.details.iter_mut().find(is_info) else { return status.clone() };
    let Ok(mut info) = rpc::ErrorInfo::decode(detail.value.as_slice()) else { return status.clone() };
    info.metadata.insert(MAY_HAVE_HAPPENED.to_owned(), "true".to_owned());
    if let Some(RecordRef { kind, id }) = record {
        info.metadata.extend([(RECORD_KIND.to_owned(), kind), (RECORD_ID.to_owned(), id)]);
    }
    detail.value = info.encode_to_vec();
    with_details(status.code(), status.message(), whole.details)
}

/// Whether an error status says that the request may have been carried out.
pub fn may_have_happened(status: &Status) -> bool {
    let details = rpc::Status::decode(status.details()).map(|status| status.details).unwrap_or_default();
    let infos = details.iter().filter(|detail| detail.type_url.ends_with("/google.rpc.ErrorInfo"));
    let mut infos = infos.filter_map(|detail| rpc::ErrorInfo::decode(detail.value.as_slice()).ok());
    infos.any(|info| info.metadata.contains_key(MAY_HAVE_HAPPENED))
}

pub fn internal() -> Status {
    of_problem(Problem::Internal, "Something went wrong on our side.", Vec::new(), None)
}

pub fn unavailable(detail: &str) -> Status {
    of_problem(Problem::Unavailable, detail, Vec::new(), Some(Duration::from_secs(1)))
}

pub fn of_problem(
    problem: Problem,
    detail: &str,
    metadata: Vec<(Cow<'static, str>, String)>,
    retry: Option<Duration>,
) -> Status {
    let passes = matches!(problem, Problem::IdempotencyInProgress | Problem::Unavailable);
    let retry = retry.or(passes.then_some(Duration::from_secs(1)));
    let info = rpc::ErrorInfo {
        reason: problem.code().to_owned(),
        domain: DOMAIN.to_owned(),
        metadata: metadata.into_iter().map(|(name, value)| (name.into_owned(), value)).collect(),
    };
    let mut details = vec![any("google.rpc.ErrorInfo", &info)];
    if let Some(delay) = retry.and_then(|delay| prost_types::Duration::try_from(delay).ok()) {
        details.push(any("google.rpc.RetryInfo", &rpc::RetryInfo { retry_delay: Some(delay) }));
    }
    with_details(grpc_code(problem), detail, details)
}

fn invalid(faults: &Faults) -> Status {
    let info = rpc::ErrorInfo {
        reason: Problem::Validation.code().to_owned(),
        domain: DOMAIN.to_owned(),
        ..rpc::ErrorInfo::default()
    };
    let violations = faults.entries().iter().map(|entry| rpc::bad_request::FieldViolation {
        field: entry.pointer.clone(),
        description: entry.detail.clone(),
        reason: entry.code().code(),
    });
    let bad = rpc::BadRequest { field_violations: violations.collect() };
    let detail = match faults.len() {
        1 => "1 field is not valid.".to_owned(),
        count => format!("{count} fields are not valid."),
    };
    let details = vec![any("google.rpc.ErrorInfo", &info), any("google.rpc.BadRequest", &bad)];
    with_details(Code::InvalidArgument, &detail, details)
}

/// A status with its faults as text that can be stored: of bounded length and without NUL.
pub fn explain(status: &Status) -> String {
    let mut text = format!("{:?}: {}", status.code(), status.message());
    let details = rpc::Status::decode(status.details()).map(|status| status.details).unwrap_or_default();
    let bad = details.iter().filter(|detail| detail.type_url.ends_with("/google.rpc.BadRequest"));
    for bad in bad.filter_map(|detail| rpc::BadRequest::decode(detail.value.as_slice()).ok()) {
        for fault in bad.field_violations {
            text.extend([" ", &fault.field, ": ", &fault.description, "."]);
        }
    }
    text.chars().filter(|character| *character != '\0').take(MAX_EXPLANATION).collect()
}

/// The problem of the contract that a status carries, if any.
pub fn problem_of(status: &Status) -> Option<Problem> {
    let details = rpc::Status::decode(status.details()).ok()?.details;
    let info = details.iter().find(|detail| detail.type_url.ends_with("/google.rpc.ErrorInfo"))?;
    let info = rpc::ErrorInfo::decode(info.value.as_slice()).ok()?;
    Problem::from_code(&info.reason)
}

fn any(name: &str, message: &impl Message) -> prost_types::Any {
    prost_types::Any { type_url: format!("type.googleapis.com/{name}"), value: message.encode_to_vec() }
}

fn with_details(code: Code, detail: &str, details: Vec<prost_types::Any>) -> Status {
    let status = rpc::Status { code: code as i32, message: detail.to_owned(), details };
    Status::with_details(code, detail, status.encode_to_vec().into())
}

fn grpc_code(problem: Problem) -> Code {
    match problem.info().status {
        400 | 413 | 415 | 422 => Code::InvalidArgument,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::NotFound,
        405 => Code::Unimplemented,
        409 | 412 => Code::FailedPrecondition,
        410 => Code::OutOfRange,
        429 => Code::ResourceExhausted,
        503 => Code::Unavailable,
        504 => Code::DeadlineExceeded,
        _ => Code::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::At;
    use proto::api::Fault;

    #[test]
    fn faults_travel_with_place_and_code() {
        let mut faults = Faults::default();
        faults.add(&At::ROOT.name("email"), Fault::BadEmail, "email must be an e-mail address");
        let status = Status::from(Error::from(faults));
        assert_eq!(status.code(), Code::InvalidArgument);
        let details = rpc::Status::decode(status.details()).unwrap().details;
        let bad = rpc::BadRequest::decode(details[1].value.as_slice()).unwrap();
        assert_eq!(bad.field_violations[0].field, "/email");
        assert_eq!(bad.field_violations[0].reason, "bad_email");
    }

    #[test]
    fn an_explanation_names_the_faults_and_can_be_stored() {
        let mut faults = Faults::default();
        faults.add(&At::ROOT.name("email"), Fault::BadEmail, "email must be an e-mail address");
        let text = explain(&Status::from(Error::from(faults)));
        assert_eq!(text, "InvalidArgument: 1 field is not valid. /email: email must be an e-mail address.");
        let long = explain(&Status::internal("\0".repeat(10) + &"é".repeat(5000)));
        assert!(long.chars().count() == MAX_EXPLANATION && !long.contains('\0'));
    }

    #[test]
    fn a_commit_in_doubt_says_so_and_names_the_record() {
        let record = Some(RecordRef { kind: "invoice".to_owned(), id: "7".to_owned() });
        let status = Status::from(Error::InDoubt(record));
        assert_eq!(status.code(), Code::Unavailable);
        let details = rpc::Status::decode(status.details()).unwrap().details;
        let info = rpc::ErrorInfo::decode(details[0].value.as_slice()).unwrap();
        let value = |name: &str| info.metadata.get(name).map(String::as_str);
        assert_eq!(value(MAY_HAVE_HAPPENED), Some("true"));
        assert_eq!((value(RECORD_KIND), value(RECORD_ID)), (Some("invoice"), Some("7")));
        assert!(details[1].type_url.ends_with("RetryInfo"), "{details:?}");
    }

    #[test]
    fn an_internal_cause_is_not_sent() {
        let status = Status::from(Error::Internal("secret table name".into()));
        assert_eq!(status.code(), Code::Internal);
        assert!(!format!("{status:?}").contains("secret"));
    }
}
