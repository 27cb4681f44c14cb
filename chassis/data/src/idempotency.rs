//! Idempotency keys: the first request with a key has its effect, and for 24 hours every repeat gets the stored response.
//! A response with a secret is not stored; a repeat then gets an error with the id of the record.
//!
//! The last statement of a write transaction stores the key with the response. A repeat runs the operation too, but cannot
//! store its key, and is undone. So a first request, as nearly all are, asks nothing about its key.

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

/// The stored response, if the key of the call was used.
pub(crate) async fn find(
    connection: &mut PgConnection,
    context: &Context,
    fingerprint: &Fingerprint,
    now: DateTime<Utc>,
) -> Result<Option<Vec<u8>>, Error> {
    let found: Option<(Vec<u8>, Option<Vec<u8>>)> = sqlx::query_as(
        "select fingerprint, response from idempotency
         where account_id = $1 and route = $2 and key = $3 and created_at > $4",
    )
    .bind(context.account_id())
    .bind(context.rpc)
    .bind(context.idempotency_key.as_deref().unwrap_or_default())
    .bind(now - WINDOW)
    .fetch_optional(connection)
    .await?;
    let Some((first, response)) = found else { return Ok(None) };
    if first != fingerprint {
        let detail = "This Idempotency-Key was used for another request. Use a new key for a new request.";
        return Err(Error::problem(Problem::IdempotencyKeyReused, detail));
    }
    let response =
        response.ok_or_else(|| Error::Internal("idempotency key has no stored response".into()))?;
    refuse_secret(&response)?;
    Ok(Some(response))
}

/// The error of a call that could not store its key, because another transaction with the same key was open too long.
pub(crate) fn still_running() -> Error {
    let detail =
        "The first request with this Idempotency-Key is still running. Repeat the request in a moment.";
    Error::problem(Problem::IdempotencyInProgress, detail)
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
pub(crate) fn fingerprint(input: &[u8], carried: &Faults) -> Fingerprint {
    let mut hash = Sha256::new();
    hash.update(input);
    for fault in carried.entries() {
        hash.update(fault.encode_length_delimited_to_vec());
    }
    hash.finalize().into()
}
