//! The SQL of scans, and nothing else.

use std::collections::{BTreeMap, HashMap};

use chassis_base::{AccountId, Error};
use chrono::{DateTime, Utc};
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

use super::{Cause, Scan, ScanParameters};

/// How many remembered causes one sweep checks.
const SWEPT: i64 = 500;

/// The key of a remembered cause. The default sorts before all keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Key {
    pub event: String,
    pub cause: Cause,
}

/// The progress of an account's scans.
#[derive(Clone, Debug, Default)]
pub(super) struct Turn {
    pub asked: i64,
    pub started_at: Option<DateTime<Utc>>,
    pub place: Key,
    pub failed: bool,
    pub swept: Key,
}

/// What is known of the time after a turn: nothing comes before `until`, if meanwhile the account's log still ends at
/// `position` and its time zone is still `zone`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quiet {
    pub until: DateTime<Utc>,
    pub position: i64,
    pub zone: &'static str,
}

type Stored = (i64, Option<DateTime<Utc>>, String, Uuid, String, bool, String, Uuid, String);

pub(super) async fn find_turn(connection: &mut PgConnection, account: AccountId) -> Result<Turn, Error> {
    let stored: Option<Stored> = sqlx::query_as(
        "select asked, started_at, event, entity_id, cause, failed, swept_event, swept_entity, swept_cause
         from scan_turn where account_id = $1",
    )
    .bind(account)
    .fetch_optional(connection)
    .await?;
    let turn =
        |(asked, started_at, event, entity_id, cause, failed, swept, swept_id, swept_cause): Stored| {
            let place = Key { event, cause: Cause { entity_id, cause } };
            let swept = Key { event: swept, cause: Cause { entity_id: swept_id, cause: swept_cause } };
            Turn { asked, started_at, place, failed, swept }
        };
    Ok(stored.map(turn).unwrap_or_default())
}

/// Saves the progress, unless a new turn was requested in the meantime, which starts from the beginning.
pub(super) async fn put_turn(
    connection: &mut PgConnection,
    account: AccountId,
    turn: &Turn,
    next_at: DateTime<Utc>,
    quiet: Option<Quiet>,
) -> Result<(), Error> {
    sqlx::query(
        "insert into scan_turn (account_id, next_at, asked, started_at, event, entity_id, cause, failed, swept_event,
            swept_entity, swept_cause, quiet_until, quiet_next_at, quiet_position, quiet_zone)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $2, $13, $14)
         on conflict (account_id) do update
            set next_at = excluded.next_at, started_at = excluded.started_at, event = excluded.event,
                entity_id = excluded.entity_id, cause = excluded.cause, failed = excluded.failed,
                swept_event = excluded.swept_event, swept_entity = excluded.swept_entity,
                swept_cause = excluded.swept_cause, quiet_until = excluded.quiet_until,
                quiet_next_at = excluded.quiet_next_at, quiet_position = excluded.quiet_position,
                quiet_zone = excluded.quiet_zone
            where scan_turn.asked = excluded.asked",
    )
    .bind(account)
    .bind(next_at)
    .bind(turn.asked)
    .bind(turn.started_at)
    .bind(&turn.place.event)
    .bind(turn.place.cause.entity_id)
    .bind(&turn.place.cause.cause)
    .bind(turn.failed)
    .bind(&turn.swept.event)
    .bind(turn.swept.cause.entity_id)
    .bind(&turn.swept.cause.cause)
    .bind(quiet.map(|quiet| quiet.until))
    .bind(quiet.map(|quiet| quiet.position))
    .bind(quiet.map(|quiet| quiet.zone))
    .execute(connection)
    .await?;
    Ok(())
}

/// Requests a new turn of the account that starts from the beginning, now.
pub(super) async fn request_turn(
    connection: &mut PgConnection,
    account: AccountId,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "insert into scan_turn (account_id, next_at, asked) values ($1, $2, 1)
         on conflict (account_id) do update
            set next_at = excluded.next_at, asked = scan_turn.asked + 1, started_at = null, event = '', failed = false,
                quiet_until = null",
    )
    .bind(account)
    .bind(now)
    .execute(connection)
    .await?;
    Ok(())
}

/// The thresholds that the account has set, by event.
pub(super) async fn list_thresholds(
    connection: &mut PgConnection,
    account: AccountId,
) -> Result<HashMap<String, i32>, Error> {
    let sql = "select event, amount from scan_threshold where account_id = $1";
    let rows: Vec<(String, i32)> = sqlx::query_as(sql).bind(account).fetch_all(connection).await?;
    Ok(rows.into_iter().collect())
}

pub(super) async fn set_threshold(
    connection: &mut PgConnection,
    account: AccountId,
    event: &str,
    amount: Option<i32>,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let sql = match amount {
        Some(_) => {
            "insert into scan_threshold (account_id, event, amount, updated_at) values ($1, $2, $3, $4)
             on conflict (account_id, event) do update set amount = excluded.amount, updated_at = excluded.updated_at"
        }
        None => {
            "delete from scan_threshold
             where account_id = $1 and event = $2 and $3::integer is null and $4::timestamptz is not null"
        }
    };
    sqlx::query(sql).bind(account).bind(event).bind(amount).bind(now).execute(connection).await?;
    Ok(())
}

/// The next causes after `after` that hold and have not been reported.
pub(super) async fn find_causes(
    connection: &mut PgConnection,
    account: AccountId,
    scan: &Scan,
    parameters: &ScanParameters,
    after: &Cause,
    limit: usize,
) -> Result<Vec<Cause>, Error> {
    let causes = scan.causes;
    // `materialized` and `offset 0` keep the planner from merging the parts into a join, so that the cost depends on
    // the number of causes and not on the planner's estimates.
    let sql = format!(
        "with found as materialized ({causes})
         select found.entity_id, found.cause from found
         where $2::timestamptz is not null and $3::date is not null and $4::integer is not null
            and $5::uuid[] is not null and $6::timestamptz[] is not null
            and (found.entity_id, found.cause) > ($8::uuid, $9::text) and not exists (
                select from scan_told reported where reported.account_id = $1 and reported.event = $7
                    and reported.entity_id = found.entity_id and reported.cause = found.cause
                offset 0)
         order by found.entity_id, found.cause limit {limit}"
    );
    let found = sqlx::query_as(AssertSqlSafe(sql))
        .bind(account)
        .bind(parameters.since)
        .bind(parameters.today)
        .bind(parameters.amount)
        .bind(&parameters.listed.ids)
        .bind(&parameters.listed.created)
        .bind(scan.event)
        .bind(after.entity_id)
        .bind(&after.cause)
        .fetch_all(connection)
        .await?;
    Ok(found)
}

pub(super) async fn lock(
    connection: &mut PgConnection,
    account: AccountId,
    sql: &'static str,
    causes: &[Cause],
) -> Result<(), Error> {
    let (entities, causes) = columns(causes);
    sqlx::query(sql).bind(account).bind(entities).bind(causes).execute(connection).await?;
    Ok(())
}

/// Remembers and returns the causes that still hold and have not been reported. A concurrent transaction waits here on
/// the unique key and then finds nothing to report.
pub(super) async fn remember(
    connection: &mut PgConnection,
    account: AccountId,
    scan: &Scan,
    parameters: &ScanParameters,
    causes: &[Cause],
    now: DateTime<Utc>,
) -> Result<Vec<Cause>, Error> {
    let holding = scan.causes;
    let sql = format!(
        "insert into scan_told (account_id, event, entity_id, cause, told_at)
         select distinct $1::uuid, $7, found.entity_id, found.cause, $10::timestamptz from ({holding}) as found
         join unnest($8::uuid[], $9::text[]) as wanted (entity_id, cause)
            on wanted.entity_id = found.entity_id and wanted.cause = found.cause
         where $2::timestamptz is not null and $3::date is not null and $4::integer is not null
            and $5::uuid[] is not null and $6::timestamptz[] is not null and found.entity_id = any($8)
         order by found.entity_id, found.cause
         on conflict (account_id, event, entity_id, cause) do nothing
         returning entity_id, cause"
    );
    let (entities, causes) = columns(causes);
    let reported = sqlx::query_as(AssertSqlSafe(sql))
        .bind(account)
        .bind(parameters.since)
        .bind(parameters.today)
        .bind(parameters.amount)
        .bind(&parameters.listed.ids)
        .bind(&parameters.listed.created)
        .bind(scan.event)
        .bind(entities)
        .bind(causes)
        .bind(now)
        .fetch_all(connection)
        .await?;
    Ok(reported)
}

/// Checks a page of remembered causes after `after` and forgets those that can no longer hold. Returns where to
/// continue.
pub(super) async fn sweep(
    connection: &mut PgConnection,
    account: AccountId,
    scans: &[Scan],
    after: &Key,
) -> Result<Key, Error> {
    let remembered: Vec<(String, Uuid, String)> = sqlx::query_as(
        "select event, entity_id, cause from scan_told
         where account_id = $1 and (event, entity_id, cause) > ($2, $3, $4)
         order by event, entity_id, cause limit $5",
    )
    .bind(account)
    .bind(&after.event)
    .bind(after.cause.entity_id)
    .bind(&after.cause.cause)
    .bind(SWEPT)
    .fetch_all(&mut *connection)
    .await?;
    let is_full = i64::try_from(remembered.len()).is_ok_and(|count| count == SWEPT);
    let mut by_event: BTreeMap<String, Vec<Cause>> = BTreeMap::new();
    let mut last = Key::default();
    for (event, entity_id, cause) in remembered {
        let cause = Cause { entity_id, cause };
        last = Key { event: event.clone(), cause: cause.clone() };
        by_event.entry(event).or_default().push(cause);
    }
    // Causes of events that only another version of the program declares are left alone.
    for scan in scans {
        if let Some(causes) = by_event.remove(scan.event) {
            forget(connection, account, scan, scan.kept, &causes).await?;
        }
    }
    Ok(if is_full { last } else { Key::default() })
}

/// The reported causes of records after `after`, up to `last`, that are not in `listed`.
pub(super) async fn find_reported_of_others(
    connection: &mut PgConnection,
    account: AccountId,
    scan: &Scan,
    after: Uuid,
    last: Option<Uuid>,
    listed: &[Uuid],
) -> Result<Vec<Cause>, Error> {
    let reported = sqlx::query_as(
        "select entity_id, cause from scan_told
         where account_id = $1 and event = $2 and entity_id > $3 and ($4::uuid is null or entity_id <= $4)
            and entity_id <> all($5)
         order by entity_id, cause limit $6",
    )
    .bind(account)
    .bind(scan.event)
    .bind(after)
    .bind(last)
    .bind(listed)
    .bind(SWEPT)
    .fetch_all(connection)
    .await?;
    Ok(reported)
}

/// Forgets causes, except those for which `kept`, a condition on `reported`, is true.
pub(super) async fn forget(
    connection: &mut PgConnection,
    account: AccountId,
    scan: &Scan,
    kept: &'static str,
    causes: &[Cause],
) -> Result<(), Error> {
    let sql = format!(
        "delete from scan_told reported using unnest($3::uuid[], $4::text[]) as old (entity_id, cause)
         where reported.account_id = $1 and reported.event = $2
            and reported.entity_id = old.entity_id and reported.cause = old.cause
            and not ({kept})"
    );
    let (entities, causes) = columns(causes);
    sqlx::query(AssertSqlSafe(sql))
        .bind(account)
        .bind(scan.event)
        .bind(entities)
        .bind(causes)
        .execute(connection)
        .await?;
    Ok(())
}

fn columns(causes: &[Cause]) -> (Vec<Uuid>, Vec<String>) {
    causes.iter().map(|cause| (cause.entity_id, cause.cause.clone())).unzip()
}
