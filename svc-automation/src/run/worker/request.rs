//! `http` steps: requests to external addresses.

use std::time::Duration;

use chassis_base::Error;
use chassis_rpc::call::AUTOMATION_DEPTH;
use chassis_work::worker::Job;
use serde_json::{Value, json};

use crate::egress::{Egress, HttpResponse, OutgoingRequest, SendError};
use crate::run::Record;
use crate::run::rules::Failure;
use crate::webhook;

/// Sends one request, signed with the account's secret. Its `webhook-id` is made of run and step: the receiver recognises
/// repeats by it. `input` is the rendered step.
pub(super) async fn send(
    egress: &Egress,
    job: &Job,
    run: &Record,
    step: &str,
    input: &Value,
    timeout: Duration,
) -> Result<Result<Value, Failure>, Error> {
    let secrets = webhook::operations::signing_secrets(job).await?;
    let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let headers = input.get("headers").and_then(Value::as_object).cloned().unwrap_or_default();
    let headers = headers.into_iter().filter_map(|(name, value)| Some((name, value.as_str()?.to_owned())));
    // A receiver that calls our API passes the depth on, so that a chain of runs through it is bounded too.
    let depth = (AUTOMATION_DEPTH.to_owned(), run.depth.to_string());
    let outgoing = OutgoingRequest {
        method: text("method"),
        url: text("url"),
        headers: headers.chain([depth]).collect(),
        body: input.get("body").map(Value::to_string).unwrap_or_default(),
        id: format!("{}:{step}", run.id),
        secrets,
        timeout,
    };
    Ok(to_answer(egress.send(&outgoing, job.now()).await))
}

/// The answer of the step, or its failure. Statuses that mean "later" are worth another attempt.
fn to_answer(sent: Result<HttpResponse, SendError>) -> Result<Value, Failure> {
    match sent {
        Ok(response) if response.is_success() => {
            let body = serde_json::from_str(&response.body).unwrap_or_else(|_| json!(response.body));
            Ok(json!({"status": response.status, "body": body}))
        }
        Ok(response) if matches!(response.status, 408 | 425 | 429 | 500..) => {
            Err(Failure::uncertain(format!("the response was {}", response.status)))
        }
        Ok(response) => Err(Failure::permanent(format!("the response was {}", response.status))),
        Err(SendError::Refused(why)) => Err(Failure::permanent(why)),
        Err(SendError::Unreachable(why)) => Err(Failure::transient(why)),
        Err(SendError::Interrupted(why)) => Err(Failure::uncertain(why)),
    }
}
