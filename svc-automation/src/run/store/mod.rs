//! The SQL of runs and their steps.

mod steps;

use chassis_base::AccountId;
use chassis_base::paging::Page;
use chassis_base::stored;
use chassis_data::list::{Fields, List, Selection, Total};
use chassis_data::row::Columns;
use chrono::{DateTime, TimeDelta, Utc};
use proto::api::PageMeta;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use super::{LIST, Record, STATUS_COLUMN, Status, TRIGGER_COLUMN};
use crate::definition::TriggerType;
use crate::dispatcher::{Excluded, Item};
use crate::error::Error;

pub(super) use steps::{list_steps, put_step};

/// How long a run is stored after its end.
const RETENTION: TimeDelta = TimeDelta::days(90);

macro_rules! columns {
    () => {
        "id, flow_id, flow_version, flow_name, trigger_type, trigger_key, entity_type, entity_id, event_id, event, \
         depth, status, step, attempts, renders, max_attempts, actions_done, failed_steps, error, next_at, version, \
         created_at, updated_at, started_at, finished_at"
    };
}

/// In the order of `columns!`.
impl FromRow<'_, PgRow> for Record {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        let mut run = Self {
            id: columns.take()?,
            flow_id: columns.take()?,
            flow_version: columns.take()?,
            flow_name: columns.take()?,
            trigger_type: stored::decode(
                "run.trigger_type",
                &columns.take::<String>()?,
                TriggerType::from_name,
            )?,
            trigger_key: columns.take()?,
            entity_type: columns.take()?,
            entity_id: columns.take()?,
            event_id: columns.take()?,
            event: columns.take()?,
            depth: columns.take()?,
            status: stored::decode("run.status", &columns.take::<String>()?, Status::from_name)?,
            // Below.
            stored_status: Status::Queued,
            step: columns.take()?,
            attempts: columns.take()?,
            renders: columns.take()?,
            max_attempts: columns.take()?,
            actions_done: columns.take()?,
            failed_steps: columns.take()?,
            error: columns.take()?,
            next_at: columns.take()?,
            version: columns.take()?,
            created_at: columns.take()?,
            updated_at: columns.take()?,
            started_at: columns.take()?,
            finished_at: columns.take()?,
        };
        run.stored_status = run.status;
        Ok(run)
    }
}

/// Which runs a list shows. A status or a flow that does not exist matches nothing.
pub(super) struct Filter<'a> {
    pub selection: Selection,
    pub status: Option<&'a str>,
    pub flow: Option<Uuid>,
    pub trigger_type: Option<TriggerType>,
    pub entity_type: &'a str,
    pub entity_id: &'a str,
}

/// A page, newest first unless `filter` has another order.
pub(super) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    filter: &Filter<'_>,
    page: Page,
) -> Result<(Vec<Record>, PageMeta), Error> {
    let mut list = List::new(account, "automation.run", columns!(), Total::Counted(LIST));
    if filter.status.is_some_and(|status| Status::from_name(status).is_none()) {
        list.only(STATUS_COLUMN, filter.status);
    } else {
        list.only_counted(STATUS_COLUMN, filter.status);
    }
    list.only_counted(TRIGGER_COLUMN, filter.trigger_type.map(TriggerType::name));
    list.only("flow_id", filter.flow);
    for (column, value) in [("entity_type", filter.entity_type), ("entity_id", filter.entity_id)] {
        list.only(column, Some(value).filter(|value| !value.is_empty()));
    }
    list.select(&filter.selection, &Fields::TIMES)?;
    Ok(list.fetch(connection, page).await?)
}

pub(super) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql = concat!("select ", columns!(), " from automation.run where account_id = $1 and id = $2");
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// Finds a run and locks its row. Whatever moves a run locks it first, so that the worker and a person never both do.
pub(super) async fn find_locked(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql =
        concat!("select ", columns!(), " from automation.run where account_id = $1 and id = $2 for update");
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// Due runs, the longest due first, without the excluded ones and flows; the group of a run is its flow.
pub(super) async fn find_due(
    connection: &mut PgConnection,
    account: AccountId,
    now: DateTime<Utc>,
    excluded: &Excluded,
    limit: i64,
) -> Result<Vec<Item>, Error> {
    let due = sqlx::query_as(
        "select id, flow_id as group_id, false as probe from automation.run
         where account_id = $1 and next_at <= $2 and not id = any($3) and not flow_id = any($4)
         order by next_at, id limit $5",
    )
    .bind(account)
    .bind(now)
    .bind(&excluded.ids)
    .bind(&excluded.groups)
    .bind(limit)
    .fetch_all(connection)
    .await?;
    Ok(due)
}

/// How many runs have not ended, counted up to `limit`: the count of a large account would take long.
pub(super) async fn count_open(
    connection: &mut PgConnection,
    account: AccountId,
    limit: i64,
) -> Result<i64, Error> {
    let count = sqlx::query_scalar(
        "select count(*) from (
            select 1 from automation.run where account_id = $1 and finished_at is null limit $2) open",
    )
    .bind(account)
    .bind(limit)
    .fetch_one(connection)
    .await?;
    Ok(count)
}

/// Stores new runs, of version 1.
pub(super) async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    runs: &[Record],
) -> Result<(), Error> {
    sqlx::query(
        "insert into automation.run
            (account_id, id, flow_id, flow_version, flow_name, trigger_type, trigger_key, entity_type, entity_id,
             event_id, event, depth, status, step, error, next_at, created_at, updated_at, finished_at)
         select $1, id, flow_id, flow_version, flow_name, trigger_type, trigger_key, entity_type, entity_id,
             event_id, event, depth, status, '', error, next_at, created_at, created_at, finished_at
         from unnest($2::uuid[], $3::uuid[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
                     $10::uuid[], $11::text[], $12::integer[], $13::text[], $14::text[], $15::timestamptz[],
                     $16::timestamptz[], $17::timestamptz[])
            as run (id, flow_id, flow_version, flow_name, trigger_type, trigger_key, entity_type, entity_id,
                    event_id, event, depth, status, error, next_at, created_at, finished_at)",
    )
    .bind(account)
    .bind(column(runs, |run| run.id))
    .bind(column(runs, |run| run.flow_id))
    .bind(column(runs, |run| run.flow_version))
    .bind(column(runs, |run| run.flow_name.as_str()))
    .bind(column(runs, |run| run.trigger_type.name()))
    .bind(column(runs, |run| run.trigger_key.as_str()))
    .bind(column(runs, |run| run.entity_type.as_str()))
    .bind(column(runs, |run| run.entity_id.as_str()))
    .bind(column(runs, |run| run.event_id))
    .bind(column(runs, |run| run.event.as_str()))
    .bind(column(runs, |run| run.depth))
    .bind(column(runs, |run| run.status.name()))
    .bind(column(runs, |run| run.error.as_str()))
    .bind(column(runs, |run| run.next_at))
    .bind(column(runs, |run| run.created_at))
    .bind(column(runs, |run| run.finished_at))
    .execute(connection)
    .await?;
    Ok(())
}

fn column<'a, T>(runs: &'a [Record], of: impl Fn(&'a Record) -> T) -> Vec<T> {
    runs.iter().map(of).collect()
}

/// Stores the state of a run.
pub(super) async fn update(
    connection: &mut PgConnection,
    account: AccountId,
    run: &Record,
) -> Result<(), Error> {
    sqlx::query(
        "update automation.run set status = $3, step = $4, attempts = $5, max_attempts = $6, actions_done = $7,
            failed_steps = $8, error = $9, next_at = $10, updated_at = $11, started_at = $12, finished_at = $13,
            renders = $14, version = $15
         where account_id = $1 and id = $2",
    )
    .bind(account)
    .bind(run.id)
    .bind(run.status.name())
    .bind(&run.step)
    .bind(run.attempts)
    .bind(run.max_attempts)
    .bind(run.actions_done)
    .bind(run.failed_steps)
    .bind(&run.error)
    .bind(run.next_at)
    .bind(run.updated_at)
    .bind(run.started_at)
    .bind(run.finished_at)
    .bind(run.renders)
    .bind(run.version)
    .execute(connection)
    .await?;
    Ok(())
}

/// The name of the account's business.
pub(super) async fn account_name(connection: &mut PgConnection, account: AccountId) -> Result<String, Error> {
    let name: Option<String> =
        sqlx::query_scalar("select name from automation.account where account_id = $1")
            .bind(account)
            .fetch_optional(connection)
            .await?;
    Ok(name.unwrap_or_default())
}

/// A run that was deleted.
#[derive(chassis_derive::FromRow)]
pub(super) struct Purged {
    pub id: Uuid,
    pub created_at: DateTime<Utc>,
    pub status: String,
    pub trigger_type: String,
}

/// Deletes runs that ended long ago, with their steps, at most `limit`; returns which. The rows are locked
/// first: a run that is being restarted either is not matched any more, or its restart waits and then finds nothing.
pub(super) async fn purge(
    connection: &mut PgConnection,
    account: AccountId,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<Purged>, Error> {
    let purged = sqlx::query_as(
        "with old as (
            select id from automation.run where account_id = $1 and finished_at < $2
            order by finished_at limit $3 for update
         ), steps as (
            delete from automation.run_step where account_id = $1 and run_id in (select id from old)
         )
         delete from automation.run where account_id = $1 and id in (select id from old)
         returning id, created_at, status, trigger_type",
    )
    .bind(account)
    .bind(now - RETENTION)
    .bind(limit)
    .fetch_all(connection)
    .await?;
    Ok(purged)
}
