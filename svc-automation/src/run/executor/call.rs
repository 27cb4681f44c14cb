//! Calls to other services.

use std::time::Duration;

use chassis_rpc::call::{IDEMPOTENCY_KEY, REQUEST_ID};
use chassis_rpc::peer::is_transport;
use chassis_rpc::token;
use chassis_work::worker::Job;
use serde_json::Value;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

use super::{Executor, Loaded};
use crate::flow::calls;
use crate::flow::definition::Call;
use crate::pump;
use crate::run::rules::Failure;

/// The largest answer that is read.
const MAX_ANSWER: usize = 4 << 20;
/// Who calls, for logs and history.
const ACTOR: &str = "automation";

impl Executor {
    /// Makes one call. Its key stands for the run and the step, so that the called service does it once however often it
    /// is made.
    pub(super) async fn call(
        &self,
        job: &Job,
        loaded: &Loaded,
        (step, call, input): (&str, &Call, &Value),
        timeout: Duration,
    ) -> Result<Value, Failure> {
        let run = &loaded.run;
        let method = calls::find(&call.method).map_err(Failure::lasting)?;
        method.allowed(&loaded.scopes).map_err(Failure::lasting)?;
        let message = method.encode(input).map_err(Failure::lasting)?;
        let peer = self.peers.get(&method.peer).ok_or_else(|| {
            tracing::error!(peer = method.peer, "PEERS names no address for this service");
            Failure::passing(format!("the service {} is not there", method.peer))
        })?;
        let depth = run.depth.unsigned_abs();
        let (actor, minter) = ((ACTOR, run.flow_name.as_str()), self.tokens.to(&method.peer));
        let token = minter.mint_caused(job.account(), actor, &loaded.scopes, depth, job.now());
        let mut metadata = MetadataMap::new();
        for (name, value) in [
            (token::HEADER, token),
            (IDEMPOTENCY_KEY, format!("{}:{step}", run.id)),
            (REQUEST_ID, format!("run-{}", run.id)),
        ] {
            let value = MetadataValue::try_from(value)
                .map_err(|_| Failure::lasting(format!("{name} cannot be sent")))?;
            metadata.insert(name, value);
        }
        let answer = peer.call(method.path.clone(), message, metadata, timeout, MAX_ANSWER);
        match pump::outside(tokio::time::timeout(timeout, answer)).await {
            Ok(Ok(answer)) => method.show(answer.get_ref()).map_err(Failure::lasting),
            Ok(Err(status)) => Err(failure(&status)),
            Err(_) => Err(Failure::uncertain("no answer in time")),
        }
    }
}

/// What a refusal means for another try.
fn failure(status: &Status) -> Failure {
    let error = chassis_base::error::status::explain(status);
    let on_the_way = is_transport(status);
    match status.code() {
        // The first call with this key is still running: it will have its answer.
        Code::FailedPrecondition if is_in_progress(status) => Failure::uncertain(error),
        Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::Unimplemented
        | Code::OutOfRange
            if !on_the_way =>
        {
            Failure::lasting(error)
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
    fn only_what_the_service_itself_refuses_is_not_tried_again() {
        let of = |problem| failure(&chassis_base::error::status::of_problem(problem, "no", Vec::new(), None));
        for problem in
            [Problem::NotFound, Problem::Validation, Problem::NotADraft, Problem::InsufficientScope]
        {
            assert!(!of(problem).passing, "{problem:?}");
        }
        for problem in
            [Problem::Unavailable, Problem::Timeout, Problem::Internal, Problem::IdempotencyInProgress]
        {
            assert!(of(problem).passing && of(problem).uncertain, "{problem:?}");
        }
        assert!(failure(&Status::unknown("the connection broke")).passing);
    }
}
