//! Checks every domain once a day, because nobody else does once it is verified. A domain whose records were set becomes
//! verified without a request; one whose records have been missing for days becomes pending.

use std::time::{Duration, Instant};

use chassis_data::Tx;
use chassis_work::Worker;
use chassis_work::worker::{Due, Job, Next};
use chrono::TimeDelta;

use super::{Record, Verifier, operations, store};
use crate::address::OwnDomain;
use crate::error::Error;

/// How long a verified domain may lack a required record. People move and repair DNS zones by hand, and mail should not
/// stop while they do.
const GRACE_PERIOD: TimeDelta = TimeDelta::days(3);
/// When the next check is due after the DNS or another service did not answer.
const RETRY_DELAY: TimeDelta = TimeDelta::hours(1);
/// How often to look for domains to check. Checks are planned at least an hour ahead, and each look finds those of the
/// next hour, so all are on time.
const LOOK_INTERVAL: Duration = Duration::from_mins(30);
/// The number of domains that one job checks.
const BATCH: i64 = 10;
/// How long the other services may take to store or remove a key.
const KEY_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn worker(verifier: Verifier) -> Worker {
    let due = Due::new("support.domain work", "true", "work.check_at");
    Worker::new("email-domains", due, move |job: Job| {
        let verifier = verifier.clone();
        async move { run(&verifier, &job).await }
    })
    .every(LOOK_INTERVAL)
}

async fn run(verifier: &Verifier, job: &Job) -> Result<Next, chassis_base::Error> {
    let due = job
        .db()
        .read(async |connection| store::list_due(connection, job.account_id(), job.now(), BATCH).await)
        .await?;
    let more = i64::try_from(due.len()).is_ok_and(|count| count >= BATCH);
    for mut record in due {
        match check(verifier, job, &record).await {
            Ok(checked) if checked.verified != record.verified => {
                job.write(&StatusChange { record: checked, own: verifier.own.clone() }, apply_check).await?;
            }
            Ok(checked) => job.write(&checked, record_check).await?,
            // No answer says nothing about the domain, so its status stays.
            Err(error) => {
                tracing::warn!(%error, "email domain check failed");
                record.check_at = job.now() + RETRY_DELAY;
                job.write(&record, record_check).await?;
            }
        }
    }
    Ok(if more { Next::Now } else { Next::WhenDue })
}

/// The domain after a check. If its status changed, the other services have the key already, or have removed it.
async fn check(verifier: &Verifier, job: &Job, record: &Record) -> Result<Record, Error> {
    let mut checked = record.clone();
    verifier.check(&mut checked, GRACE_PERIOD, job.now()).await?;
    if checked.verified && !record.verified && is_taken(job, &checked).await? {
        checked.verified = false;
    }
    let deadline = Instant::now() + KEY_TIMEOUT;
    if checked.verified && !record.verified {
        verifier.distribute_key(job.account(), deadline, &checked).await?;
    } else if record.verified && !checked.verified {
        verifier.revoke_key(job.account(), deadline, &checked.host).await?;
    }
    Ok(checked)
}

/// Whether another account receives the mail of the domain. That account has to give it up first.
async fn is_taken(job: &Job, record: &Record) -> Result<bool, Error> {
    if !record.receiving {
        return Ok(false);
    }
    let owner = job.db().read(async |connection| store::find_route(connection, &record.host).await).await?;
    Ok(owner.is_some_and(|owner| owner != job.account_id()))
}

/// A domain whose status a check has changed.
struct StatusChange {
    record: Record,
    own: OwnDomain,
}

async fn apply_check(tx: &mut Tx<'_>, StatusChange { record, own }: &StatusChange) -> Result<(), Error> {
    operations::apply_check(tx, record, own).await.map(drop)
}

async fn record_check(tx: &mut Tx<'_>, checked: &Record) -> Result<(), Error> {
    operations::record_check(tx, checked).await
}
