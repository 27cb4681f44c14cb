//! Looking at mandates that were given: no provider tells of one that was withdrawn, so each is asked for within a day, and
//! before something depends on it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chassis_data::Tx;
use chassis_rpc::Context;
use chassis_work::Worker;
use chassis_work::worker::{Due, Job, Next, backoff};
use chrono::{DateTime, TimeDelta, Utc};
use provider::{Fault, Mandate};
use uuid::Uuid;

use super::rules::{self, Answered};
use super::{Debtor, operations, store};
use crate::Error;
use crate::online::{By, Till, away};

/// How many mandates of an account one job asks for, one after the other.
const BATCH: usize = 20;
/// How many accounts are worked on at once, and so how many questions a process has open at a provider.
const MAX_IN_FLIGHT: usize = 4;
/// Nothing here is in a hurry.
const EVERY: Duration = Duration::from_mins(1);
/// When a mandate is taken up again whose asker was killed.
const GRACE: TimeDelta = TimeDelta::minutes(1);
/// When a mandate is asked for again whose provider did not answer.
const INITIAL_BACKOFF: TimeDelta = TimeDelta::minutes(1);
const MAX_BACKOFF: TimeDelta = TimeDelta::hours(3);
/// An account whose provider did not answer is left alone for this long.
const PAUSE: TimeDelta = TimeDelta::seconds(30);
/// Some of the caller's time is left for the answer.
const ANSWER_TIME: Duration = Duration::from_millis(500);

/// The worker that asks for the valid mandates of all accounts.
pub fn worker(till: Arc<Till>) -> Worker {
    let live = "work.mandate_status = 'valid' and work.provider = $argument";
    let due = Due::new("billing.debtor work", live, "work.ask_at").argument(till.provider.name());
    let worker = Worker::new("mandates", due, move |job| {
        let till = Arc::clone(&till);
        async move { run(&job, &till).await }
    });
    worker.concurrency(MAX_IN_FLIGHT).every(EVERY)
}

async fn run(job: &Job, till: &Till) -> Result<Next, chassis_base::Error> {
    let provider = By(till.provider.name());
    for _ in 0..BATCH {
        let Some(asked) = job.write(&provider, claim).await? else { return Ok(Next::WhenDue) };
        let at = job.now();
        match till.provider.mandates(&asked.customer_id).await {
            Ok(mandates) => {
                let seen = Seen { client: asked.client_id, provider, mandates, at };
                job.write(&seen, note).await?;
            }
            Err(fault) => {
                tracing::warn!(%fault, client = %asked.client_id, "a mandate could not be asked for");
                let until = job.now() + wait(&fault, asked.ask_failures);
                job.write(&(asked.client_id, provider, until), postpone).await?;
                // The others of the account would fare no better.
                return Ok(Next::After(PAUSE));
            }
        }
    }
    Ok(Next::Now)
}

/// How long to leave a mandate alone that could not be asked for.
fn wait(fault: &Fault, failures: i32) -> TimeDelta {
    let retry = match fault {
        Fault::Unavailable { retry_after: Some(seconds), .. } => {
            i64::try_from(*seconds).ok().and_then(TimeDelta::try_seconds).unwrap_or_default()
        }
        _ => TimeDelta::zero(),
    };
    let failures = u32::try_from(failures).unwrap_or(1);
    backoff(failures, INITIAL_BACKOFF, MAX_BACKOFF).max(retry.min(MAX_BACKOFF))
}

async fn claim(tx: &mut Tx<'_>, By(provider): &By) -> Result<Option<store::Asked>, Error> {
    tx.unaudited("a mandate is about to be looked at");
    let again_at = tx.now() + GRACE;
    store::claim(tx, provider, again_at).await
}

async fn postpone(
    tx: &mut Tx<'_>,
    (client, By(provider), until): &(Uuid, By, DateTime<Utc>),
) -> Result<(), Error> {
    tx.unaudited("a mandate could not be looked at; it is as it was");
    store::postpone(tx, *client, provider, *until).await
}

/// What a provider said of a client's mandates.
struct Seen {
    client: Uuid,
    provider: By,
    mandates: Vec<Mandate>,
    at: DateTime<Utc>,
}

async fn note(tx: &mut Tx<'_>, seen: &Seen) -> Result<(), Error> {
    let account = tx.account();
    let Some(known) = store::lock(tx.db(), account, seen.client, seen.provider.0).await? else {
        return Ok(());
    };
    let learnt = rules::told(&known, Answered { mandates: &seen.mandates, at: seen.at });
    operations::keep(tx, &known, &learnt).await
}

/// Asks for the mandate of a client on the spot, within the time that the caller has.
pub async fn look(till: &Till, context: &Context, debtor: &Debtor) -> Result<(), Error> {
    let at = context.clock.now();
    let left = context.deadline.saturating_duration_since(Instant::now()).saturating_sub(ANSWER_TIME);
    let answer = tokio::time::timeout(left, till.provider.mandates(&debtor.customer_id)).await;
    let mandates = match answer {
        Ok(Ok(mandates)) => mandates,
        Ok(Err(fault)) => {
            tracing::warn!(%fault, client = %debtor.client_id, "a mandate could not be asked for");
            return Err(away());
        }
        Err(_) => return Err(away()),
    };
    let seen = Seen { client: debtor.client_id, provider: By(till.provider.name()), mandates, at };
    // The answer that repeats of the call get is not this transaction's.
    let context = Context { idempotency_key: None, ..context.clone() };
    Ok(till.db.amend(&context, &seen, &(), note).await?)
}
