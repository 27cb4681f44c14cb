//! Idempotency keys: the first use of a key runs, every repeat gets its answer, for 24 hours. An answer with a secret is not
//! kept: a repeat is told which record it was about.

use chrono::{DateTime, TimeDelta, Utc};
use proto::api::Problem;
use proto::policy::SECRET_ANSWERS;
use sqlx::PgConnection;

use crate::account::AccountId;
use crate::call::Context;
use crate::error::Error;
use crate::worker::{AT_ONCE, Due, Job, Next, Worker};
use crate::write::Tx;

/// How long a key is remembered.
pub const WINDOW: TimeDelta = TimeDelta::hours(24);

/// How many keys one transaction forgets.
const BATCH: i64 = 5000;

pub(crate) enum Claim {
    /// The first use: the operation is to run.
    Ours,
    /// A repeat: the first answer.
    Done(Vec<u8>),
    /// The key belongs to another request.
    Reused,
}

/// Stands in the place of an answer that is not kept, before the id of its record. No message begins with it.
const NOT_KEPT: u8 = 0;

/// What is stored of an answer for repeats of the call. `record` is what the call has changed.
pub(crate) fn kept(rpc: &str, answer: Vec<u8>, record: Option<&str>) -> Vec<u8> {
    if !SECRET_ANSWERS.contains(&rpc) {
        return answer;
    }
    std::iter::once(NOT_KEPT).chain(record.unwrap_or_default().bytes()).collect()
}

/// Refuses the repeat of a call whose answer was not kept.
fn refuse_secret(stored: &[u8]) -> Result<(), Error> {
    let Some((&NOT_KEPT, record)) = stored.split_first() else { return Ok(()) };
    let detail = "The first answer to this Idempotency-Key had a secret, which is shown once. What it made exists; make \
                  a new secret if that answer was lost.";
    let problem = Error::problem(Problem::SecretAlreadyShown, detail);
    Err(if record.is_empty() { problem } else { problem.with("id", String::from_utf8_lossy(record)) })
}

/// Inserts the key. A twin that is still running makes this wait until it has committed or failed.
pub(crate) async fn claim(
    connection: &mut PgConnection,
    context: &Context,
    fingerprint: &[u8; 32],
    now: DateTime<Utc>,
) -> Result<Claim, Error> {
    let account = context.account_id();
    let key = context.idempotency_key.as_deref().unwrap_or_default();
    let claimed = sqlx::query(
        "insert into idempotency (account_id, route, key, fingerprint, created_at) values ($1, $2, $3, $4, $5)
         on conflict (account_id, route, key) do update
            set fingerprint = excluded.fingerprint, response = null, created_at = excluded.created_at
            where idempotency.created_at <= $6",
    )
    .bind(account)
    .bind(context.rpc)
    .bind(key)
    .bind(fingerprint.as_slice())
    .bind(now)
    .bind(now - WINDOW)
    .execute(&mut *connection)
    .await
    .map_err(still_running)?;
    if claimed.rows_affected() == 1 {
        return Ok(Claim::Ours);
    }
    let (stored, response): (Vec<u8>, Option<Vec<u8>>) = sqlx::query_as(
        "select fingerprint, response from idempotency where account_id = $1 and route = $2 and key = $3",
    )
    .bind(account)
    .bind(context.rpc)
    .bind(key)
    .fetch_one(connection)
    .await?;
    if stored != fingerprint {
        return Ok(Claim::Reused);
    }
    if let Some(response) = &response {
        refuse_secret(response)?;
    }
    response.map(Claim::Done).ok_or_else(|| Error::Internal("an idempotency key without a response".into()))
}

fn still_running(error: sqlx::Error) -> Error {
    let error = Error::Database(error);
    if error.is_lock_timeout() {
        let detail =
            "The first request with this Idempotency-Key is still running. Repeat the request in a moment.";
        return Error::problem(Problem::IdempotencyInProgress, detail);
    }
    error
}

/// Forgets keys of an account whose window has passed, at most [`BATCH`]; returns how many.
pub async fn purge(
    connection: &mut PgConnection,
    account: AccountId,
    now: DateTime<Utc>,
) -> Result<u64, Error> {
    let purged = sqlx::query(
        "delete from idempotency where account_id = $1 and (route, key) in (
            select route, key from idempotency where account_id = $1 and created_at <= $2 limit $3)",
    )
    .bind(account)
    .bind(now - WINDOW)
    .bind(BATCH)
    .execute(connection)
    .await?;
    Ok(purged.rows_affected())
}

/// Purges every account that uses keys, once an hour.
pub(crate) fn worker() -> Worker {
    let due = Due::new("idempotency work", "true", AT_ONCE);
    Worker::new("idempotency", due, async |job: Job| {
        let purged = job.write(&(), purge_now).await?;
        let more = i64::try_from(purged).is_ok_and(|purged| purged >= BATCH);
        Ok(if more { Next::Now } else { Next::After(TimeDelta::hours(1)) })
    })
    .every(std::time::Duration::from_hours(1))
}

async fn purge_now(tx: &mut Tx<'_>, (): &()) -> Result<u64, Error> {
    let (account, now) = (tx.account(), tx.now());
    purge(tx.db(), account, now).await
}
