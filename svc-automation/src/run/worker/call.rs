//! `call` steps: calls of other services.

use std::time::Duration;

use chassis_rpc::call::{IDEMPOTENCY_KEY, REQUEST_ID};
use chassis_rpc::peer::{Peers, is_transport};
use chassis_rpc::token::{self, Tokens};
use chassis_work::worker::Job;
use serde_json::Value;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

use crate::definition::methods;
use crate::definition::model::Call;
use crate::dispatcher::await_external;
use crate::run::Record;
use crate::run::rules::Failure;

/// The largest response that is read.
const MAX_RESPONSE: usize = 4 << 20;
/// The caller's name in logs and audit entries of other services.
const ACTOR: &str = "automation";

/// Calls other services.
pub(super) struct ServiceClient {
    pub peers: Peers,
    pub tokens: Tokens,
}

/// One call.
#[derive(Clone, Copy)]
pub(super) struct StepCall<'a> {
    pub run: &'a Record,
    pub step: &'a str,
    pub call: &'a Call,
    /// The rendered arguments.
    pub input: &'a Value,
    /// What the flow may do.
    pub scopes: &'a [String],
    pub timeout: Duration,
}

impl ServiceClient {
    /// Makes one call. Its idempotency key is made of run and step, so that the called service has the effect once,
    /// however often the call is repeated.
    pub(super) async fn call(&self, job: &Job, request: StepCall<'_>) -> Result<Value, Failure> {
        let StepCall { run, step, call, input, scopes, timeout } = request;
        let method = methods::find(&call.method).map_err(Failure::permanent)?;
        method.check_scopes(scopes).map_err(Failure::permanent)?;
        let message = method.encode(input).map_err(Failure::permanent)?;
        let peer = self.peers.get(&method.peer).ok_or_else(|| {
            tracing::error!(peer = method.peer, "PEERS has no address for this service");
            Failure::transient(format!("the service {} is not there", method.peer))
        })?;
        let minter = self.tokens.to(&method.peer).at_depth(run.depth.unsigned_abs());
        let token = minter.mint(job.account(), ACTOR, &run.flow_name, scopes, job.now());
        let mut metadata = MetadataMap::new();
        for (name, value) in [
            (token::HEADER, token),
            (IDEMPOTENCY_KEY, format!("{}:{step}", run.id)),
            (REQUEST_ID, format!("run-{}", run.id)),
        ] {
            let value = MetadataValue::try_from(value)
                .map_err(|_| Failure::permanent(format!("{name} cannot be sent")))?;
            metadata.insert(name, value);
        }
        let response = peer.call(method.path.clone(), message, metadata, timeout, MAX_RESPONSE);
        match await_external(tokio::time::timeout(timeout, response)).await {
            Ok(Ok(response)) => method.decode(response.get_ref()).map_err(Failure::permanent),
            Ok(Err(status)) => Err(failure(&status)),
            Err(_) => Err(Failure::uncertain("no response in time")),
        }
    }
}

/// Which failures are worth another attempt: all but those by which the called service itself refuses the request.
fn failure(status: &Status) -> Failure {
    let error = chassis_base::error::status::explain(status);
    let is_refusal = !is_transport(status);
    match status.code() {
        // The first call with this key is still in progress; a repeat gets its response.
        Code::FailedPrecondition if is_in_progress(status) => Failure::uncertain(error),
        Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::Unimplemented
        | Code::OutOfRange
            if is_refusal =>
        {
            Failure::permanent(error)
        }
        _ => Failure::uncertain(error),
    }
}

fn is_in_progress(status: &Status) -> bool {
    let code = proto::api::Problem::IdempotencyInProgress.code().as_bytes();
    status.details().windows(code.len()).any(|part| part == code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::api::Problem;

    #[test]
    fn only_what_the_service_itself_refuses_is_not_retried() {
        let of = |problem| failure(&chassis_base::error::status::of_problem(problem, "no", Vec::new(), None));
        for problem in
            [Problem::NotFound, Problem::Validation, Problem::NotADraft, Problem::InsufficientScope]
        {
            assert!(!of(problem).is_transient, "{problem:?}");
        }
        for problem in
            [Problem::Unavailable, Problem::Timeout, Problem::Internal, Problem::IdempotencyInProgress]
        {
            assert!(of(problem).is_transient && of(problem).is_uncertain, "{problem:?}");
        }
        assert!(failure(&Status::unknown("the connection broke")).is_transient);
    }
}
