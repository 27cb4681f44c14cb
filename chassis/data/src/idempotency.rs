//! Idempotency keys: the first request with a key runs, and for 24 hours every repeat gets the stored response. A
//! response with a secret is not stored; a repeat then gets an error with the id of the record.

use chassis_base::{AccountId, Error};
use chassis_rpc::call::Context;
use chrono::{DateTime, TimeDelta, Utc};
use prost::Message;
use proto::Faults;
use proto::api::Problem;
use proto::policy::SECRET_ANSWERS;
use sha2::{Digest, Sha256};
use sqlx::PgConnection;

/// A digest that is equal for two requests with the same content.
pub(crate) type Fingerprint = [u8; 32];

/// How long a key is kept.
pub const WINDOW: TimeDelta = TimeDelta::hours(24);

/// How many keys one transaction deletes.
pub const BATCH: i64 = 5000;

pub(crate) enum Claim {
    /// The first use: the operation must run.
    Ours,
    /// A repeat, with the stored response.
    Done(Vec<u8>),
    /// The key belongs to another request.
    Reused,
}

/// Marks a response that is not stored; the id of its record follows. No encoded message begins with this byte.
const NOT_KEPT: u8 = 0;

/// Returns what is stored for repeats of the call. `record` is the id of the record that the call has changed.
pub(crate) fn kept(rpc: &str, answer: Vec<u8>, record: Option<&str>) -> Vec<u8> {
    if !SECRET_ANSWERS.contains(&rpc) {
        return answer;
    }
    std::iter::once(NOT_KEPT).chain(record.unwrap_or_default().bytes()).collect()
}

/// Refuses the repeat of a call whose response was not stored.
fn refuse_secret(stored: &[u8]) -> Result<(), Error> {
    let Some((&NOT_KEPT, record)) = stored.split_first() else { return Ok(()) };
    let detail = "The first answer to this Idempotency-Key had a secret, which is shown once. What it made exists; make \
                  a new secret if that answer was lost.";
    let problem = Error::problem(Problem::SecretAlreadyShown, detail);
    Err(if record.is_empty() { problem } else { problem.with("id", String::from_utf8_lossy(record)) })
}

/// Inserts the key. If another transaction has inserted it and is still open, this waits until that one has ended.
pub(crate) async fn claim(
    connection: &mut PgConnection,
    context: &Context,
    fingerprint: &Fingerprint,
    now: DateTime<Utc>,
) -> Result<Claim, Error> {
    let account = context.account_id();
    let key = context.idempotency_key.as_deref().unwrap_or_default();
    // Concurrent requests meet at the unique key: the second insert waits, and finds the row if the first commits. A
    // rollback or a crash releases the key. An expired row is taken over in the same statement.
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
    response.map(Claim::Done).ok_or_else(|| Error::Internal("idempotency key has no stored response".into()))
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

/// Deletes at most [`BATCH`] expired keys of an account and returns how many.
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

/// Hashes the request and the faults of fields that could not be decoded. The rpc is not hashed: it is part of the key.
pub(crate) fn fingerprint(input: &impl Message, carried: &Faults) -> Fingerprint {
    let mut hash = Sha256::new();
    hash.update(input.encode_to_vec());
    for fault in carried.entries() {
        hash.update(fault.encode_length_delimited_to_vec());
    }
    hash.finalize().into()
}
