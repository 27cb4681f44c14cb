//! The SQL of events.

use std::collections::HashSet;

use chassis_base::AccountId;
use chassis_base::paging::Page;
use chassis_data::list::{Fields, List, Selection, Total};
use chassis_data::row::Columns;
use chrono::{DateTime, TimeDelta, Utc};
use proto::api::PageMeta;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use super::{Event, ReadAccess, Record};
use crate::error::Error;

/// How long an event is stored.
pub(crate) const RETENTION: TimeDelta = TimeDelta::days(30);

/// Stores the events that are not stored yet; returns their ids.
pub(crate) async fn insert_new(
    connection: &mut PgConnection,
    account: AccountId,
    events: &[Event],
    now: DateTime<Utc>,
) -> Result<HashSet<Uuid>, Error> {
    // Always in the order of ids: two transactions that insert the same events in different orders would deadlock.
    let mut events: Vec<&Event> = events.iter().collect();
    events.sort_unstable_by_key(|event| event.id);
    let new: Vec<Uuid> = sqlx::query_scalar(
        "insert into automation.event
            (account_id, id, type, entity_type, entity_id, sequence, data, occurred_at, received_at, depth, actor)
         select $1, id, type, entity_type, entity_id, sequence, data, occurred_at, $9, depth, actor
         from unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::timestamptz[],
                     $10::integer[], $11::text[])
            as event (id, type, entity_type, entity_id, sequence, data, occurred_at, depth, actor)
         on conflict (account_id, id) do nothing
         returning id",
    )
    .bind(account)
    .bind(column(&events, |event| event.id))
    .bind(column(&events, |event| event.kind.as_str()))
    .bind(column(&events, |event| event.entity_type.as_str()))
    .bind(column(&events, |event| event.entity_id.as_str()))
    .bind(column(&events, |event| event.sequence))
    .bind(column(&events, |event| event.data.as_str()))
    .bind(column(&events, |event| event.occurred_at))
    .bind(now)
    .bind(column(&events, |event| i32::try_from(event.depth).unwrap_or(i32::MAX)))
    .bind(column(&events, |event| event.actor.as_str()))
    .fetch_all(connection)
    .await?;
    Ok(new.into_iter().collect())
}

/// How many runs in a row led to an event; 0 for one that is not stored.
pub(crate) async fn find_depth(
    connection: &mut PgConnection,
    account: AccountId,
    id: Option<Uuid>,
) -> Result<u32, Error> {
    let Some(id) = id else { return Ok(0) };
    let depth: Option<i32> =
        sqlx::query_scalar("select depth from automation.event where account_id = $1 and id = $2")
            .bind(account)
            .bind(id)
            .fetch_optional(connection)
            .await?;
    Ok(depth.unwrap_or_default().unsigned_abs())
}

fn column<'a, T>(events: &[&'a Event], of: impl Fn(&'a Event) -> T) -> Vec<T> {
    events.iter().map(|event| of(event)).collect()
}

/// The columns that decide who may read an event.
#[derive(chassis_derive::FromRow)]
struct AccessRow {
    #[sqlx(rename = "type")]
    kind: String,
    entity_type: String,
    sequence: Option<i64>,
    occurred_at: DateTime<Utc>,
    actor: String,
}

/// Finds what decides who may read an event; the other fields of the event are empty.
pub(crate) async fn find_for_access(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Event>, Error> {
    let found: Option<AccessRow> = sqlx::query_as(
        "select type, entity_type, sequence, occurred_at, actor from automation.event
         where account_id = $1 and id = $2",
    )
    .bind(account)
    .bind(id)
    .fetch_optional(connection)
    .await?;
    Ok(found.map(|row| Event {
        id,
        kind: row.kind,
        entity_type: row.entity_type,
        entity_id: String::new(),
        sequence: row.sequence,
        data: String::new(),
        occurred_at: row.occurred_at,
        depth: 0,
        actor: row.actor,
    }))
}

/// Which events a list shows; an empty text does not restrict it.
pub(crate) struct Filter<'a> {
    pub selection: Selection,
    pub kind: &'a str,
    pub entity_type: &'a str,
    pub entity_id: &'a str,
    pub from: DateTime<Utc>,
    pub to: Option<DateTime<Utc>>,
}

/// An event never changes.
const FIELDS: Fields = Fields { created_at: "received_at", updated_at: "received_at", sorts: &[] };

const COLUMNS: &str = "id, type, entity_type, entity_id, data, occurred_at, received_at";

/// In the order of `COLUMNS`.
impl FromRow<'_, PgRow> for Record {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        Ok(Self {
            id: columns.take()?,
            kind: columns.take()?,
            entity_type: columns.take()?,
            entity_id: columns.take()?,
            data: columns.take()?,
            occurred_at: columns.take()?,
            received_at: columns.take()?,
        })
    }
}

/// A page of the readable events, newest first unless `filter` has another order.
pub(crate) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    access: &ReadAccess,
    filter: &Filter<'_>,
    page: Page,
) -> Result<(Vec<Record>, PageMeta), Error> {
    let mut list = List::new(account, "automation.event", COLUMNS, Total::Matching);
    list.matching(|values| access.condition(values));
    list.between("received_at", Some(filter.from), filter.to);
    for (column, value) in
        [("type", filter.kind), ("entity_type", filter.entity_type), ("entity_id", filter.entity_id)]
    {
        if !value.is_empty() {
            list.equals(column, value);
        }
    }
    list.order_by("received_at", true).select(&filter.selection, &FIELDS)?;
    Ok(list.fetch(connection, page).await?)
}

/// Deletes old events, at most `limit`; returns how many.
pub(crate) async fn purge(
    connection: &mut PgConnection,
    account: AccountId,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<u64, Error> {
    let purged = sqlx::query(
        "delete from automation.event where account_id = $1 and id in (
            select id from automation.event where account_id = $1 and received_at < $2 limit $3)",
    )
    .bind(account)
    .bind(now - RETENTION)
    .bind(limit)
    .execute(connection)
    .await?;
    Ok(purged.rows_affected())
}
