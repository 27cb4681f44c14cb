//! What a refused call says.

#![expect(clippy::expect_used, reason = "a test that gets another answer has to stop")]

use prost::Message;
use proto::google::rpc;
use tonic::{Code, Status};

/// The pointers and codes of the faults of an invalid request.
pub fn faults(status: &Status) -> Vec<(String, String)> {
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    let bad = detail::<rpc::BadRequest>(status, "google.rpc.BadRequest");
    bad.field_violations.into_iter().map(|violation| (violation.field, violation.reason)).collect()
}

/// What the faults of an answer are compared with.
pub fn expected_faults(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(pointer, code)| ((*pointer).to_owned(), (*code).to_owned())).collect()
}

/// The code of a problem, as its reason, and what the caller finds in `data`, as its metadata.
pub fn error_info(status: &Status) -> rpc::ErrorInfo {
    detail(status, "google.rpc.ErrorInfo")
}

fn detail<M: Message + Default>(status: &Status, name: &str) -> M {
    let details = rpc::Status::decode(status.details()).expect("details").details;
    let detail =
        details.iter().find(|detail| detail.type_url.ends_with(name)).expect("a detail of this type");
    M::decode(detail.value.as_slice()).expect("a message of this type")
}
