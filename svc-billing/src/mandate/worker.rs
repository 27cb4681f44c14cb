//! Fetches the valid mandates of all accounts once a day, because providers send no webhook when one is withdrawn.

use std::sync::Arc;
use std::time::Duration;

use chassis_work::Worker;
use chassis_work::worker::{Due, Job, Next, backoff};
use chrono::TimeDelta;
use provider::{Fault, Provider};

use super::operations::{self, FetchedMandates, Postponed};
use crate::online_payment::ProviderName;

/// The number of mandates of an account that one job fetches, one after the other.
const BATCH: usize = 20;
/// The number of accounts that are worked on at the same time, which limits the requests in flight to the provider.
const MAX_IN_FLIGHT: usize = 4;
/// Mandates are fetched a day after the last time, so each is known long before. Retries are sooner, and need no look.
const POLL_INTERVAL: Duration = Duration::from_hours(1);
const INITIAL_BACKOFF: TimeDelta = TimeDelta::minutes(1);
const MAX_BACKOFF: TimeDelta = TimeDelta::hours(3);
/// The pause of an account after a failed request to the provider.
const PAUSE_AFTER_FAULT: TimeDelta = TimeDelta::seconds(30);

pub(crate) fn worker(provider: Arc<dyn Provider>) -> Worker {
    let live = "work.mandate_status = 'valid' and work.provider = $argument";
    let due = Due::new("billing.debtor work", live, "work.ask_at").argument(provider.name());
    let worker = Worker::new("mandates", due, move |job| {
        let provider = Arc::clone(&provider);
        async move { run(&job, &*provider).await }
    });
    worker.concurrency(MAX_IN_FLIGHT).every(POLL_INTERVAL)
}

async fn run(job: &Job, provider: &dyn Provider) -> Result<Next, chassis_base::Error> {
    let name = ProviderName(provider.name());
    for _ in 0..BATCH {
        let Some(due) = job.write(&name, operations::claim).await? else { return Ok(Next::WhenDue) };
        let at = job.now();
        match provider.list_mandates(&due.customer_id).await {
            Ok(mandates) => {
                let fetched = FetchedMandates { client: due.client_id, provider: name, mandates, at };
                job.write(&fetched, operations::record_mandates).await?;
            }
            Err(fault) => {
                tracing::warn!(%fault, client = %due.client_id, "mandate could not be fetched");
                let until = job.now() + retry_delay(&fault, due.ask_failures);
                let postponed = Postponed { client: due.client_id, provider: name, until };
                job.write(&postponed, operations::postpone).await?;
                // The provider would most likely not answer for the other mandates of the account either.
                return Ok(Next::After(PAUSE_AFTER_FAULT));
            }
        }
    }
    Ok(Next::Now)
}

/// The time until the next attempt: the backoff, or what the provider asks for if that is longer.
fn retry_delay(fault: &Fault, failures: i32) -> TimeDelta {
    let requested = match fault {
        Fault::Unavailable { retry_after: Some(seconds), .. } => {
            i64::try_from(*seconds).ok().and_then(TimeDelta::try_seconds).unwrap_or_default()
        }
        _ => TimeDelta::zero(),
    };
    let failures = u32::try_from(failures).unwrap_or(1);
    backoff(failures, INITIAL_BACKOFF, MAX_BACKOFF).max(requested.min(MAX_BACKOFF))
}
