//! The only SQL on events.

use std::collections::HashSet;

use chassis_base::AccountId;
use chassis_base::paging::Page;
use chassis_data::list::{List, Total};
use chassis_data::row::Columns;
use chrono::{DateTime, TimeDelta, Utc};
use proto::api::PageMeta;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use super::Event;
use super::readers::Reader;
use crate::Error;

/// How long an event is kept.
pub(crate) const KEPT: TimeDelta = TimeDelta::days(30);

/// Keeps the events that are not known yet; returns their ids.
pub(crate) async fn insert_new(
    connection: &mut PgConnection,
    account: AccountId,
    events: &[Event],
    now: DateTime<Utc>,
) -> Result<HashSet<Uuid>, Error> {
    // In one order, so that two batches with the same events do not lock one another out.
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

/// How many times in a row automation led to an event; 0 for one that is not kept.
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

/// What decides who may read an event.
pub(crate) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Event>, Error> {
    type Row = (String, String, Option<i64>, DateTime<Utc>, String);
    let found: Option<Row> = sqlx::query_as(
        "select type, entity_type, sequence, occurred_at, actor from automation.event
         where account_id = $1 and id = $2",
    )
    .bind(account)
    .bind(id)
    .fetch_optional(connection)
    .await?;
    let event = |(kind, entity_type, sequence, occurred_at, actor)| Event {
        id,
        kind,
        entity_type,
        entity_id: String::new(),
        sequence,
        data: String::new(),
        occurred_at,
        depth: 0,
        actor,
    };
    Ok(found.map(event))
}

/// Which events a list shows; empty texts ask for nothing.
pub(crate) struct Filter<'a> {
    pub kind: &'a str,
    pub entity_type: &'a str,
    pub entity_id: &'a str,
    pub from: DateTime<Utc>,
    pub to: Option<DateTime<Utc>>,
}

/// An event as lists show it.
pub(crate) struct Row {
    pub id: Uuid,
    pub kind: String,
    pub entity_type: String,
    pub entity_id: String,
    pub data: String,
    pub occurred_at: DateTime<Utc>,
    pub received_at: DateTime<Utc>,
}

const COLUMNS: &str = "id, type, entity_type, entity_id, data, occurred_at, received_at";

/// In the order of `COLUMNS`.
impl FromRow<'_, PgRow> for Row {
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

/// A page of what somebody may read, newest first.
pub(crate) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    reader: &Reader,
    filter: &Filter<'_>,
    page: Page,
) -> Result<(Vec<Row>, PageMeta), Error> {
    let mut list = List::new(account, "automation.event", COLUMNS, Total::Matching);
    list.matching(|values| reader.condition(values));
    list.between("received_at", Some(filter.from), filter.to);
    for (column, value) in
        [("type", filter.kind), ("entity_type", filter.entity_type), ("entity_id", filter.entity_id)]
    {
        if !value.is_empty() {
            list.equals(column, value.to_owned());
        }
    }
    // Always one of the allowed ones, so there is nothing to be wrong with it.
    list.sort(&[("created_at", "received_at")], "created_at", "desc", &mut proto::Faults::default());
    Ok(list.fetch(connection, page).await?)
}

/// Forgets old events, at most `most` of them; returns how many.
pub(crate) async fn purge(
    connection: &mut PgConnection,
    account: AccountId,
    now: DateTime<Utc>,
    most: i64,
) -> Result<u64, Error> {
    let purged = sqlx::query(
        "delete from automation.event where account_id = $1 and id in (
            select id from automation.event where account_id = $1 and received_at < $2 limit $3)",
    )
    .bind(account)
    .bind(now - KEPT)
    .bind(most)
    .execute(connection)
    .await?;
    Ok(purged.rows_affected())
}
