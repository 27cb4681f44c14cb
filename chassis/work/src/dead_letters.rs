//! Events and mails whose delivery was given up. Operators can list and retry them. Reads the rows of all accounts,
//! like the sweeps of workers.

use std::collections::HashSet;

use chassis_base::{AccountId, Error};
use chassis_data::db::Db;
use chrono::{DateTime, Utc};
use clap::Subcommand;
use uuid::Uuid;

/// How many dead letters are listed.
const MAX_LISTED: i64 = 1000;

#[derive(Clone, Copy, Debug, Subcommand)]
pub enum Action {
    /// List them, the oldest first, as tab-separated fields: kind, id, account, what, attempts, since when, why
    List,
    /// Retry one, or all of them
    Retry {
        /// The id of an event or a mail; all if it is absent
        id: Option<Uuid>,
    },
}

#[derive(Clone, Debug, PartialEq, chassis_derive::FromRow)]
pub struct DeadLetter {
    /// `event` or `mail`.
    pub kind: String,
    pub id: Uuid,
    pub account_id: AccountId,
    /// Type and listener of an event; reference of a mail.
    pub what: String,
    pub attempts: i32,
    pub dead_at: DateTime<Utc>,
    pub last_error: String,
}

/// The oldest dead letters of all accounts.
pub async fn list(db: &Db) -> Result<Vec<DeadLetter>, Error> {
    let query = sqlx::query_as(
        "select kind, id, account_id, what, attempts, dead_at, last_error from (
            select 'event' as kind, refused.id, refused.account_id, event || ' to ' || reader as what, attempts, dead_at,
                last_error
            from reader_exception refused
            join log entry on entry.account_id = refused.account_id and entry.id = refused.id
            where dead_at is not null
            union all
            select 'event', id, account_id, type || ' to ' || listener, attempts, dead_at, last_error
            from outbox where dead_at is not null
            union all
            select 'mail', id, account_id, reference, attempts, done_at, last_error from mail where status = 'dead'
         ) letters where dead_at is not null order by dead_at, id limit $1",
    )
    .bind(MAX_LISTED);
    db.read(async |connection| Ok(query.fetch_all(connection).await?)).await
}

/// Makes one or all dead letters due again with a full number of attempts; returns how many. A retried event arrives
/// after the later events of its entity that were already delivered. A mail is sent only to the recipients for whom it
/// was not accepted.
pub async fn retry(db: &Db, id: Option<Uuid>) -> Result<u64, Error> {
    let now = db.clock().now();
    let retried = db
        .autocommit(async |connection| {
            let events: Vec<AccountId> = sqlx::query_scalar(
                "update reader_exception set dead_at = null, attempts = 0, next_at = $2
             where dead_at is not null and ($1::uuid is null or id = $1) returning account_id",
            )
            .bind(id)
            .bind(now)
            .fetch_all(&mut *connection)
            .await?;
            // Those of the release before.
            let old: Vec<AccountId> = sqlx::query_scalar(
                "update outbox set dead_at = null, attempts = 0, next_at = $2
             where dead_at is not null and ($1::uuid is null or id = $1) returning account_id",
            )
            .bind(id)
            .bind(now)
            .fetch_all(&mut *connection)
            .await?;
            let mails: Vec<AccountId> = sqlx::query_scalar(
            "update mail set status = 'queued', attempts = 0, next_at = $2, done_at = null, refused = '{}'
             where status = 'dead' and ($1::uuid is null or id = $1) returning account_id",
        )
        .bind(id)
        .bind(now)
        .fetch_all(&mut *connection)
        .await?;
            Ok::<_, Error>([events, old, mails].concat())
        })
        .await?;
    for account in retried.iter().collect::<HashSet<_>>() {
        db.wake_workers(*account).await;
    }
    Ok(u64::try_from(retried.len()).unwrap_or(u64::MAX))
}

/// Runs the action of the command line.
pub async fn command(db: &Db, action: Action) -> Result<(), Error> {
    match action {
        Action::List => {
            for letter in list(db).await? {
                println!("{}", line(&letter));
            }
        }
        Action::Retry { id } => println!("{}", retry(db, id).await?),
    }
    Ok(())
}

fn line(letter: &DeadLetter) -> String {
    let DeadLetter { kind, id, account_id, what, attempts, dead_at, last_error } = letter;
    let since = dead_at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
    let plain = |text: &str| text.replace(char::is_control, " ");
    let (what, why) = (plain(what), plain(last_error));
    format!("{kind}\t{id}\t{account_id}\t{what}\t{attempts}\t{since}\t{why}")
}
