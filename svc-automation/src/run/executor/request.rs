//! Requests to addresses outside.

use std::time::Duration;

use chassis_base::Error;
use chassis_rpc::call::AUTOMATION_DEPTH;
use chassis_work::worker::Job;
use serde_json::{Value, json};

use super::Executor;
use crate::outside::{Answer, Outgoing, Trouble};
use crate::run::Record;
use crate::run::rules::Failure;
use crate::webhook;

impl Executor {
    /// Makes one request, signed with the account's secret. `webhook-id` stands for the run and the step: the receiver
    /// knows by it what it has had before.
    pub(super) async fn request(
        &self,
        job: &Job,
        run: &Record,
        (step, input): (&str, &Value),
        timeout: Duration,
    ) -> Result<Result<Value, Failure>, Error> {
        let secrets = webhook::operations::signing_secrets(job).await?;
        let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let headers = input.get("headers").and_then(Value::as_object).cloned().unwrap_or_default();
        let headers =
            headers.into_iter().filter_map(|(name, value)| Some((name, value.as_str()?.to_owned())));
        // Should it come back to us, the chain is known.
        let depth = (AUTOMATION_DEPTH.to_owned(), run.depth.to_string());
        let outgoing = Outgoing {
            method: text("method"),
            url: text("url"),
            headers: headers.chain([depth]).collect(),
            body: input.get("body").map(Value::to_string).unwrap_or_default(),
            id: format!("{}:{step}", run.id),
            secrets,
            timeout,
        };
        Ok(understand(self.outside.send(&outgoing, job.now()).await))
    }
}

fn understand(sent: Result<Answer, Trouble>) -> Result<Value, Failure> {
    match sent {
        Ok(answer) if answer.is_success() => {
            let body = serde_json::from_str(&answer.body).unwrap_or_else(|_| json!(answer.body));
            Ok(json!({"status": answer.status, "body": body}))
        }
        Ok(answer) if matches!(answer.status, 408 | 425 | 429 | 500..) => {
            Err(Failure::uncertain(format!("the answer was {}", answer.status)))
        }
        Ok(answer) => Err(Failure::lasting(format!("the answer was {}", answer.status))),
        Err(Trouble::Refused(why)) => Err(Failure::lasting(why)),
        Err(Trouble::Unreachable(why)) => Err(Failure::passing(why)),
        Err(Trouble::Broken(why)) => Err(Failure::uncertain(why)),
    }
}
