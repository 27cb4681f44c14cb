//! The exact limit: never more than 30 accepted requests of a key in any 60 seconds, over all replicas. A token bucket
//! cannot promise that, so the times of the accepted requests are kept in a row that one statement locks, reads and
//! changes.

use std::sync::Arc;

use chassis_base::Error;
use chassis_data::Db;
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;

use super::Decision;
use super::waiting::Waiting;
use crate::keys::Caller;

const LIMIT: u32 = 30;
const WINDOW: TimeDelta = TimeDelta::seconds(60);
/// The name of the limit, in the row and in the headers.
const POLICY: &str = "exact";

/// At most 30 accepted requests in any 60 seconds per key.
#[derive(Default)]
pub struct ExactLimit {
    /// Keys that have no requests left, and until when. Accepted requests stay in their window whatever other replicas
    /// do, so that the database need not be asked again until then.
    full: Waiting<Arc<str>, DateTime<Utc>>,
}

impl ExactLimit {
    /// Counts a request of this moment if it is accepted; a refused one does not count.
    pub async fn check(&self, db: &Db, caller: &Caller, now: DateTime<Utc>) -> Result<Decision, Error> {
        if let Some(until) = self.full.until(&caller.public_id, now) {
            return Ok(refused(until, now));
        }
        let (is_accepted, hits) = db
            .autocommit(async |connection| {
                if let Some(hits) = accept(connection, caller, now).await? {
                    return Ok((true, hits));
                }
                // A second query, because a refusal changes no row and so returns none. It has a snapshot of its own,
                // and sees what the first statement waited for.
                Ok::<_, Error>((false, hits(connection, caller).await?))
            })
            .await?;
        if is_accepted {
            return Ok(accepted(&hits, now));
        }
        let until = free_at(&hits, now);
        self.full.add(Arc::clone(&caller.public_id), until, now);
        Ok(refused(until, now))
    }
}

/// Adds the request if its window has room, and returns all hits that are kept; else `None`. The statement is its own
/// transaction: the limit counts a request also when the operation behind it fails.
///
/// The row lock that the statement takes serializes the requests of one key over all replicas, which makes the limit
/// exact. The hits are in the order of their times, and the last 30 of them are kept: the first of those alone decides
/// whether the window of a moment has room. A request whose time was taken before it waited for the lock, or by a clock
/// that is behind, is judged by its own window too, and is then kept with the time of the last hit.
async fn accept(
    connection: &mut PgConnection,
    caller: &Caller,
    now: DateTime<Utc>,
) -> Result<Option<Vec<DateTime<Utc>>>, sqlx::Error> {
    sqlx::query_scalar(
        "insert into exact_window as w (account_id, public_id, rate, hits) values ($1, $2, $3, array[$4::timestamptz])
         on conflict (account_id, public_id, rate) do update
            set hits = w.hits[cardinality(w.hits) - $6 + 2:] || greatest($4, w.hits[cardinality(w.hits)])
            where cardinality(w.hits) < $6 or w.hits[cardinality(w.hits) - $6 + 1] <= $5
         returning hits",
    )
    .bind(caller.account.id)
    .bind(&*caller.public_id)
    .bind(POLICY)
    .bind(now)
    .bind(now - WINDOW)
    .bind(i32::try_from(LIMIT).unwrap_or(i32::MAX))
    .fetch_optional(connection)
    .await
}

async fn hits(connection: &mut PgConnection, caller: &Caller) -> Result<Vec<DateTime<Utc>>, sqlx::Error> {
    let hits = sqlx::query_scalar(
        "select hits from exact_window where account_id = $1 and public_id = $2 and rate = $3",
    )
    .bind(caller.account.id)
    .bind(&*caller.public_id)
    .bind(POLICY)
    .fetch_optional(connection)
    .await?;
    Ok(hits.unwrap_or_default())
}

/// When a window that is full has room again: when the 30th hit from the end leaves it.
fn free_at(hits: &[DateTime<Utc>], now: DateTime<Utc>) -> DateTime<Utc> {
    let oldest_that_counts = hits.iter().rev().nth(LIMIT as usize - 1);
    oldest_that_counts.map_or(now, |hit| *hit + WINDOW)
}

fn accepted(hits: &[DateTime<Utc>], now: DateTime<Utc>) -> Decision {
    let used = hits.iter().filter(|hit| **hit > now - WINDOW).count();
    let newest = hits.last().copied().unwrap_or(now);
    Decision {
        allowed: true,
        limit: LIMIT,
        remaining: LIMIT.saturating_sub(u32::try_from(used).unwrap_or(LIMIT)),
        reset_seconds: seconds_until(newest + WINDOW, now),
        retry_after_seconds: 0,
        policy: POLICY,
    }
}

fn refused(until: DateTime<Utc>, now: DateTime<Utc>) -> Decision {
    let wait = seconds_until(until, now).max(1);
    Decision {
        allowed: false,
        limit: LIMIT,
        remaining: 0,
        reset_seconds: wait,
        retry_after_seconds: wait,
        policy: POLICY,
    }
}

fn seconds_until(time: DateTime<Utc>, now: DateTime<Utc>) -> u64 {
    (time - now).to_std().map(super::seconds_up).unwrap_or_default()
}
