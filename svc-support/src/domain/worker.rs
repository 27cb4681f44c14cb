//! Looks at every domain again each day, as nobody else does once it is verified: one whose DNS is set becomes verified by
//! itself, one whose records have been gone for days becomes pending.

use std::time::{Duration, Instant};

use chassis::Tx;
use chassis::worker::{Due, Job, Next, Worker};
use chrono::TimeDelta;

use super::inspect::{Inspector, settle};
use super::{Record, audited, store};
use crate::Error;
use crate::address::OwnDomain;

/// How long a verified domain may lack what it needs: a DNS is moved and mended by hand, and its mail should not stop for
/// that.
const GRACE: TimeDelta = TimeDelta::days(3);
/// When to look again after the DNS, or another service, did not answer.
const LATER: TimeDelta = TimeDelta::hours(1);
/// How many domains one job looks at.
const BATCH: i64 = 10;
/// How long the other services may take with a key.
const PATIENCE: Duration = Duration::from_secs(10);

pub fn worker(inspector: Inspector) -> Worker {
    let due = Due::new("support.domain work", "true", "work.check_at");
    Worker::new("email-domains", due, move |job: Job| {
        let inspector = inspector.clone();
        async move { run(&inspector, &job).await }
    })
    .every(Duration::from_mins(1))
}

async fn run(inspector: &Inspector, job: &Job) -> Result<Next, chassis::Error> {
    let mut connection = job.db().read().await?;
    let due = store::list_due(&mut connection, job.account_id(), job.now(), BATCH).await?;
    connection.done();
    let more = i64::try_from(due.len()).is_ok_and(|count| count >= BATCH);
    for mut record in due {
        match inspect(inspector, job, &record).await {
            Ok(seen) if seen.verified != record.verified => {
                job.write(&(seen, inspector.own.clone()), switch).await?;
            }
            Ok(seen) => job.write(&seen, note).await?,
            // Who does not answer says nothing of the domain.
            Err(error) => {
                tracing::warn!(%error, "an email domain could not be looked at");
                record.check_at = job.now() + LATER;
                job.write(&record, note).await?;
            }
        }
    }
    Ok(if more { Next::Now } else { Next::WhenDue })
}

/// The domain as it is after a look; the other services know of the change already.
async fn inspect(inspector: &Inspector, job: &Job, record: &Record) -> Result<Record, Error> {
    let mut seen = record.clone();
    inspector.look(&mut seen, GRACE, job.now()).await?;
    if seen.verified && !record.verified && is_taken(job, &seen).await? {
        seen.verified = false;
    }
    let deadline = Instant::now() + PATIENCE;
    if seen.verified && !record.verified {
        inspector.give_key(job.account(), deadline, &seen).await?;
    } else if record.verified && !seen.verified {
        inspector.take_key(job.account(), deadline, &seen.host).await?;
    }
    Ok(seen)
}

/// Whether its mail comes in for another account, which has to give it up first.
async fn is_taken(job: &Job, record: &Record) -> Result<bool, Error> {
    if !record.receiving {
        return Ok(false);
    }
    let mut connection = job.db().read().await?;
    let owner = store::find_route(&mut connection, &record.host).await?;
    connection.done();
    Ok(owner.is_some_and(|owner| owner != job.account_id()))
}

async fn switch(tx: &mut Tx<'_>, (seen, own): &(Record, OwnDomain)) -> Result<(), Error> {
    let record = settle(tx, seen).await?;
    audited(tx, record, own)?;
    Ok(())
}

async fn note(tx: &mut Tx<'_>, record: &Record) -> Result<(), Error> {
    tx.unaudited("a look that found nothing new is no change");
    let account = tx.account();
    store::note(tx.db(), account, record).await
}
