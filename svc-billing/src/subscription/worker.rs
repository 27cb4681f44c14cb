//! Creates the invoices that are due: one worker for all accounts, one transaction for each invoice.
//!
//! A period never gets two invoices, whichever process is killed when: the plan is read while the subscription is
//! locked, its next date moves in the transaction that creates the invoice, and the database refuses a second invoice
//! of a period.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chassis_base::Error as ChassisError;
use chassis_work::Worker;
use chassis_work::worker::{Due, Job, Next, backoff};
use chrono::TimeDelta;
use proto::relations::Relation;
use uuid::Uuid;

use super::operations::{BillingFailure, DueSubscription, process_due, record_failure};
use super::store;
use crate::document::shared::Shared;
use crate::processor::PaymentProcessor;

/// The most subscriptions that one job processes.
const BATCH: usize = 20;
/// The time for looking up a client.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);
const INITIAL_BACKOFF: TimeDelta = TimeDelta::minutes(1);
const MAX_BACKOFF: TimeDelta = TimeDelta::hours(1);

/// The worker that creates the invoices of subscriptions, and ends the subscriptions whose end has passed.
pub(crate) fn worker(shared: Arc<Shared>, processor: Arc<PaymentProcessor>) -> Worker {
    let due = Due::new("billing.subscription work", "work.due_at is not null", "work.due_at");
    Worker::new("subscriptions", due, move |job| {
        let (shared, processor) = (Arc::clone(&shared), Arc::clone(&processor));
        async move { run(&job, &shared, &processor).await }
    })
}

async fn run(job: &Job, shared: &Shared, processor: &PaymentProcessor) -> Result<Next, ChassisError> {
    let provider = processor.provider_for(job.account_id()).await?;
    // Clients are looked up before the transaction, and once for a batch.
    let mut clients: HashMap<Uuid, Option<Relation>> = HashMap::new();
    // Those of one moment are looked up together, because each look-up sorts all of them. Others are not: when several periods
    // of a subscription have passed, its next one may come before them, and numbers follow the dates.
    let mut batch = VecDeque::new();
    for processed in 0..BATCH {
        if batch.is_empty() {
            let limit = i64::try_from(BATCH - processed).unwrap_or(1);
            let found = job
                .db()
                .read(async |connection| {
                    store::list_due(connection, job.account_id(), job.now(), limit).await
                })
                .await?;
            batch.extend(found);
        }
        let Some(due) = batch.pop_front() else { return Ok(Next::WhenDue) };
        if let Some(id) = due.client_id.filter(|id| !clients.contains_key(id)) {
            let found = shared.clients.get(job.account(), id, Instant::now() + CLIENT_TIMEOUT).await?;
            clients.insert(id, found);
        }
        let client = due.client_id.and_then(|id| clients.get(&id).cloned().flatten());
        let subscription = DueSubscription { id: due.id, client, links: shared.links.clone(), provider };
        if let Err(error) = job.write(&subscription, process_due).await {
            // A subscription that cannot be billed must not block the others. A transient error ends the job, which is
            // repeated.
            let Some(reason) = permanent_reason(&error) else { return Err(error) };
            tracing::warn!(subscription = %due.id, reason, "invoice of a subscription could not be created");
            let failures = u32::try_from(due.failures).unwrap_or_default().saturating_add(1);
            let retry_at = job.now() + backoff(failures, INITIAL_BACKOFF, MAX_BACKOFF);
            job.write(&BillingFailure { id: due.id, retry_at, reason }, record_failure).await?;
        }
    }
    Ok(Next::Now)
}

/// Why an invoice cannot be created as long as nothing is changed; `None` for an error that may pass by itself.
fn permanent_reason(error: &ChassisError) -> Option<String> {
    match error {
        ChassisError::Invalid(faults) => {
            let details = faults.entries().iter().map(|entry| entry.detail.as_str());
            Some(details.collect::<Vec<_>>().join("; "))
        }
        ChassisError::Problem { detail, .. } => Some(detail.clone()),
        _ => None,
    }
}
