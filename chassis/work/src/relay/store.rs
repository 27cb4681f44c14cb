//! What a listener has still to receive: the events after its position in the log, and its exceptions.

use chassis_base::error::status::explain;
use chassis_base::{AccountId, Error};
use chassis_data::log::event::INTERNAL_EVENTS;
use chassis_data::{Listener, Tx};
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;
use tonic::Status;
use uuid::Uuid;

use super::MAX_ATTEMPTS;
use crate::worker::{Job, backoff};

/// The most events of one call.
pub(super) const BATCH: i64 = 100;
/// How many log entries one query looks through. A listener that wants few of the events skips many entries.
const WINDOW: i64 = 5000;
const INITIAL_BACKOFF: TimeDelta = TimeDelta::seconds(1);
const MAX_BACKOFF: TimeDelta = TimeDelta::minutes(10);

/// An event that the listener does not have yet.
#[derive(Clone, Debug, chassis_derive::FromRow)]
pub(super) struct Undelivered {
    /// 0 in events of the release before.
    pub position: i64,
    pub id: Uuid,
    pub event: String,
    pub kind: String,
    pub record_id: String,
    pub sequence: i64,
    pub data: String,
    pub at: DateTime<Utc>,
    pub depth: i32,
    /// How often it was refused.
    #[sqlx(default)]
    pub attempts: i32,
    /// Whether it is an exception.
    #[sqlx(default)]
    pub is_retried: bool,
    /// Set if an earlier event of the entity is an exception: when that one is retried.
    #[sqlx(default)]
    pub held_until: Option<DateTime<Utc>>,
}

/// The result of delivering a batch.
#[derive(Default)]
pub(super) struct Outcome {
    pub listener: String,
    pub delivered: Vec<Undelivered>,
    pub refused: Vec<(Undelivered, Status)>,
    /// Why the remaining events were not delivered.
    pub interrupted: Option<Status>,
    /// Where the listener is now in the log, if that has changed.
    pub position: Option<i64>,
}

impl Outcome {
    /// Whether exceptions are to be stored or removed.
    fn has_exceptions(&self) -> bool {
        !self.refused.is_empty() || self.delivered.iter().any(|event| event.is_retried)
    }
}

/// What there is to deliver.
pub(super) struct Found {
    /// Whether events of the release before are due.
    pub has_old: bool,
    /// Whether exceptions are due.
    pub has_exceptions: bool,
    /// `None` if the listener has read all.
    pub fresh: Option<Fresh>,
}

/// The next events of the log.
pub(super) struct Fresh {
    pub events: Vec<Undelivered>,
    /// The position up to which these are all.
    pub end: i64,
    /// Whether there are none after `end`.
    pub is_last: bool,
}

#[derive(chassis_derive::FromRow)]
struct Row {
    has_old: bool,
    has_exceptions: bool,
    reader_position: Option<i64>,
    target: Option<i64>,
    position: Option<i64>,
    id: Option<Uuid>,
    event: Option<String>,
    kind: Option<String>,
    record_id: Option<String>,
    sequence: Option<i64>,
    data: Option<String>,
    at: Option<DateTime<Utc>>,
    depth: Option<i32>,
    held_until: Option<DateTime<Utc>>,
}

/// Finds what is to be delivered, in one statement. An event is held if an earlier one of its entity is an exception, or
/// waits in the table of the release before.
/// A probe for each entry, whatever Postgres knows about the size of the tables.
pub(super) async fn read(job: &Job, listener: &Listener) -> Result<Found, Error> {
    let query = sqlx::query_as(
        "select has_old, has_exceptions, reader.position as reader_position, target, event.*
         from (select
            exists (select from outbox
                where account_id = $1 and listener = $2 and dead_at is null and next_at <= $3) as has_old,
            exists (select from reader_exception
                where account_id = $1 and reader = $2 and dead_at is null and next_at <= $3) as has_exceptions) waiting
         left join reader on reader.account_id = $1 and reader.name = $2 and reader.target > reader.position
         left join lateral (
            select feed.position, entry.id, event, kind, record_id, sequence, data, at, depth,
                (select max(next_at) from (
                    select next_at from reader_exception earlier
                    where earlier.account_id = $1 and earlier.reader = $2 and earlier.kind = entry.kind
                        and earlier.record_id = entry.record_id and earlier.dead_at is null
                    union all
                    select next_at from outbox earlier
                    where earlier.account_id = $1 and earlier.listener = $2 and earlier.entity_type = entry.kind
                        and earlier.entity_id::text = entry.record_id and earlier.sequence < entry.sequence
                        and earlier.dead_at is null) earlier) as held_until
            from feed
            cross join lateral (
                select id, event, kind, record_id, sequence, data, at, depth from log
                where account_id = $1 and id = feed.id and event is not null
                    and (event = any($5) or $5 = '{}' and event <> all($6)) limit 1) entry
            where feed.account_id = $1 and feed.position > reader.position
                and feed.position <= least(reader.target, reader.position + $4)
                and not exists (select from reader_exception known
                    where known.account_id = $1 and known.reader = $2 and known.position = feed.position)
            order by feed.position limit $7) event on true",
    )
    .bind(job.account_id())
    .bind(&listener.name)
    .bind(job.now())
    .bind(WINDOW)
    .bind(&listener.types)
    .bind(INTERNAL_EVENTS)
    .bind(BATCH);
    let rows: Vec<Row> =
        job.db().read(async |connection| Ok::<_, Error>(query.fetch_all(connection).await?)).await?;
    let Some(first) = rows.first() else {
        return Ok(Found { has_old: false, has_exceptions: false, fresh: None });
    };
    let (has_old, has_exceptions) = (first.has_old, first.has_exceptions);
    let Some((position, target)) = first.reader_position.zip(first.target) else {
        return Ok(Found { has_old, has_exceptions, fresh: None });
    };
    let events: Vec<Undelivered> = rows.into_iter().filter_map(Row::event).collect();
    let is_full = i64::try_from(events.len()).is_ok_and(|count| count == BATCH);
    let end = match events.last() {
        Some(last) if is_full => last.position,
        _ => target.min(position + WINDOW),
    };
    Ok(Found { has_old, has_exceptions, fresh: Some(Fresh { events, end, is_last: end >= target }) })
}

impl Row {
    fn event(self) -> Option<Undelivered> {
        Some(Undelivered {
            position: self.position?,
            id: self.id?,
            event: self.event?,
            kind: self.kind?,
            record_id: self.record_id?,
            sequence: self.sequence?,
            data: self.data.unwrap_or_default(),
            at: self.at?,
            depth: self.depth?,
            attempts: 0,
            is_retried: false,
            held_until: self.held_until,
        })
    }
}

/// The exceptions that are due and have no earlier event in the table of the release before.
pub(super) async fn exceptions(job: &Job, listener: &Listener) -> Result<Vec<Undelivered>, Error> {
    let query = sqlx::query_as(
        "select position, refused.id, event, refused.kind, refused.record_id, sequence, coalesce(data, '') as data,
            refused.at, depth, attempts, true as is_retried
         from reader_exception refused
         join log entry on entry.account_id = refused.account_id and entry.id = refused.id
         where refused.account_id = $1 and refused.reader = $2 and dead_at is null and next_at <= $3
            and not exists (select from outbox earlier
                where earlier.account_id = $1 and earlier.listener = $2 and earlier.entity_type = refused.kind
                    and earlier.entity_id::text = refused.record_id and earlier.sequence < entry.sequence
                    and earlier.dead_at is null)
         order by position limit $4",
    )
    .bind(job.account_id())
    .bind(&listener.name)
    .bind(job.now())
    .bind(BATCH);
    job.db().read(async |connection| Ok(query.fetch_all(connection).await?)).await
}

/// Makes exceptions of events whose entity has an earlier one.
pub(super) async fn hold(job: &Job, listener: &Listener, events: Vec<Undelivered>) -> Result<(), Error> {
    job.write(&(listener.name.clone(), events), insert_held).await
}

async fn insert_held(tx: &mut Tx<'_>, (reader, events): &(String, Vec<Undelivered>)) -> Result<(), Error> {
    let account = tx.account();
    sqlx::query(
        "insert into reader_exception
            (account_id, reader, position, id, kind, record_id, at, attempts, next_at, last_error)
         select $1, $2, position, id, kind, record_id, at, 0, next_at, ''
         from unnest($3::bigint[], $4::uuid[], $5::text[], $6::text[], $7::timestamptz[], $8::timestamptz[])
            as event (position, id, kind, record_id, at, next_at)",
    )
    .bind(account)
    .bind(reader)
    .bind(events.iter().map(|event| event.position).collect::<Vec<_>>())
    .bind(events.iter().map(|event| event.id).collect::<Vec<_>>())
    .bind(events.iter().map(|event| event.kind.as_str()).collect::<Vec<_>>())
    .bind(events.iter().map(|event| event.record_id.as_str()).collect::<Vec<_>>())
    .bind(events.iter().map(|event| event.at).collect::<Vec<_>>())
    .bind(events.iter().map(|event| event.held_until).collect::<Vec<_>>())
    .execute(tx.db())
    .await?;
    Ok(())
}

/// Moves the listener to its new position, removes exceptions that were delivered and stores those that were refused, in
/// one transaction. After a crash before the commit, the batch is delivered again.
pub(super) async fn settle(job: &Job, outcome: &Outcome) -> Result<(), Error> {
    if outcome.has_exceptions() {
        return job.write(outcome, store).await;
    }
    let Some(position) = outcome.position else { return Ok(()) };
    // One round trip, and no check of the lease: the listener has these events, and a position only grows, so it does no
    // harm if a process that has lost its lease moves it.
    let account = job.account_id();
    job.db().autocommit(async |connection| move_reader(connection, account, outcome, position).await).await
}

async fn store(tx: &mut Tx<'_>, outcome: &Outcome) -> Result<(), Error> {
    let reader = &outcome.listener;
    remove_exceptions(tx, reader, &outcome.delivered).await?;
    for (event, status) in &outcome.refused {
        defer(tx, reader, event, status).await?;
    }
    let Some(position) = outcome.position else { return Ok(()) };
    let account = tx.account();
    move_reader(tx.db(), account, outcome, position).await
}

async fn move_reader(
    connection: &mut PgConnection,
    account: AccountId,
    outcome: &Outcome,
    position: i64,
) -> Result<(), Error> {
    let last_at = outcome.delivered.last().map(|event| event.at);
    // The commit does not wait for the disk, if it has nothing else to store: when the server crashes before it has written
    // the position, the listener gets events again that it knows.
    sqlx::query(
        "update reader set position = $3, since = coalesce($4, since)
         where account_id = $1 and name = $2 and position < $3
            and case when $5 then set_config('synchronous_commit', 'off', true) else '' end is not null",
    )
    .bind(account)
    .bind(&outcome.listener)
    .bind(position)
    .bind(last_at)
    .bind(!outcome.has_exceptions())
    .execute(connection)
    .await?;
    Ok(())
}

async fn remove_exceptions(tx: &mut Tx<'_>, reader: &str, delivered: &[Undelivered]) -> Result<(), Error> {
    let positions: Vec<i64> =
        delivered.iter().filter(|event| event.is_retried).map(|event| event.position).collect();
    if positions.is_empty() {
        return Ok(());
    }
    let account = tx.account();
    sqlx::query("delete from reader_exception where account_id = $1 and reader = $2 and position = any($3)")
        .bind(account)
        .bind(reader)
        .bind(positions)
        .execute(tx.db())
        .await?;
    Ok(())
}

/// The consequences of a refusal.
pub(super) struct Deferral {
    pub attempts: i32,
    pub next_at: DateTime<Utc>,
    pub dead_at: Option<DateTime<Utc>>,
    pub last_error: String,
}

impl Deferral {
    pub(super) fn new(listener: &str, event: &Undelivered, status: &Status, now: DateTime<Utc>) -> Self {
        let attempts = event.attempts + 1;
        let is_dead = attempts >= MAX_ATTEMPTS;
        if is_dead {
            tracing::error!(listener, event = %event.id, "event given up, now a dead letter");
        } else {
            tracing::warn!(listener, event = %event.id, attempts, code = ?status.code(), "event delivery deferred");
        }
        Self {
            attempts,
            next_at: now + backoff(attempts.unsigned_abs(), INITIAL_BACKOFF, MAX_BACKOFF),
            dead_at: is_dead.then_some(now),
            last_error: explain(status),
        }
    }
}

/// Stores a refusal. The later exceptions of the entity wait as long, or no longer if the event is dead.
async fn defer(tx: &mut Tx<'_>, reader: &str, event: &Undelivered, status: &Status) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let Deferral { attempts, next_at, dead_at, last_error } = Deferral::new(reader, event, status, now);
    sqlx::query(
        "with later as (
            update reader_exception set next_at = $10
            where account_id = $1 and reader = $2 and kind = $5 and record_id = $6 and position > $3
                and dead_at is null
        )
        insert into reader_exception
            (account_id, reader, position, id, kind, record_id, at, attempts, next_at, dead_at, last_error)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $11, $12)
        on conflict (account_id, reader, position) do update
            set attempts = excluded.attempts, next_at = excluded.next_at, dead_at = excluded.dead_at,
                last_error = excluded.last_error",
    )
    .bind(account)
    .bind(reader)
    .bind(event.position)
    .bind(event.id)
    .bind(&event.kind)
    .bind(&event.record_id)
    .bind(event.at)
    .bind(attempts)
    .bind(next_at)
    .bind(if dead_at.is_some() { now } else { next_at })
    .bind(dead_at)
    .bind(last_error)
    .execute(tx.db())
    .await?;
    Ok(())
}
