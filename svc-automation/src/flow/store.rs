//! The SQL of flows, and nothing else.

use chassis_base::AccountId;
use chassis_base::paging::Page;
use chassis_data::list::{List, Total};
use chassis_data::row::Columns;
use chrono::{DateTime, Utc};
use proto::api::PageMeta;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use super::Record;
use crate::Error;

macro_rules! columns {
    () => {
        "id, name, description, category, trigger_type, trigger_key, active, step_count, version, ready_made, \
         next_start_at, created_at, updated_at"
    };
}

/// In the order of `columns!`.
impl FromRow<'_, PgRow> for Record {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        Ok(Self {
            id: columns.take()?,
            name: columns.take()?,
            description: columns.take()?,
            category: columns.take()?,
            trigger_type: columns.take()?,
            trigger_key: columns.take()?,
            active: columns.take()?,
            step_count: columns.take()?,
            version: columns.take()?,
            ready_made: columns.take()?,
            next_start_at: columns.take()?,
            created_at: columns.take()?,
            updated_at: columns.take()?,
        })
    }
}

/// A page, newest first.
pub(crate) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    (trigger_type, active): (Option<&'static str>, Option<bool>),
    page: Page,
) -> Result<(Vec<Record>, PageMeta), Error> {
    let mut list = List::new(account, "automation.flow", columns!(), Total::Matching);
    list.equals("deleted", false);
    if let Some(trigger_type) = trigger_type {
        list.equals("trigger_type", trigger_type);
    }
    if let Some(active) = active {
        list.equals("active", active);
    }
    Ok(list.fetch(connection, page).await?)
}

pub(crate) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql = concat!(
        "select ",
        columns!(),
        " from automation.flow where account_id = $1 and id = $2 and not deleted"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// Finds a flow that is about to be changed; others who want to change it wait.
pub(crate) async fn find_locked(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql = concat!(
        "select ",
        columns!(),
        " from automation.flow where account_id = $1 and id = $2 and not deleted for update"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// The same by its name.
pub(crate) async fn find_named_locked(
    connection: &mut PgConnection,
    account: AccountId,
    name: &str,
) -> Result<Option<Record>, Error> {
    let sql = concat!(
        "select ",
        columns!(),
        " from automation.flow where account_id = $1 and name = $2 and not deleted for update"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(name).fetch_optional(connection).await?)
}

/// The active flows that one of these events starts, in the order in which they were made.
pub(crate) async fn find_triggered(
    connection: &mut PgConnection,
    account: AccountId,
    events: &[String],
) -> Result<Vec<Record>, Error> {
    let sql = concat!(
        "select ",
        columns!(),
        " from automation.flow where account_id = $1 and trigger_key = any($2) and active and not deleted
            and trigger_type in ('event', 'custom')
          order by created_at, id"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(events).fetch_all(connection).await?)
}

/// Scheduled flows whose time has come, with that time; others who look wait.
pub(crate) async fn find_scheduled(
    connection: &mut PgConnection,
    account: AccountId,
    now: DateTime<Utc>,
    most: i64,
) -> Result<Vec<(Record, DateTime<Utc>)>, Error> {
    let sql = concat!(
        "select ",
        columns!(),
        " from automation.flow where account_id = $1 and next_start_at <= $2 and active and not deleted
          order by next_start_at, id limit $3 for update"
    );
    let due: Vec<Record> =
        sqlx::query_as(sql).bind(account).bind(now).bind(most).fetch_all(connection).await?;
    let planned = |flow: Record| flow.next_start_at.map(|planned| (flow, planned));
    Ok(due.into_iter().filter_map(planned).collect())
}

pub(crate) async fn set_next_start(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
    next: Option<DateTime<Utc>>,
) -> Result<(), Error> {
    sqlx::query("update automation.flow set next_start_at = $3 where account_id = $1 and id = $2")
        .bind(account)
        .bind(id)
        .bind(next)
        .execute(connection)
        .await?;
    Ok(())
}

/// Stores a flow, new or changed. Tells whether it could: another one may have taken the name.
pub(crate) async fn put(
    connection: &mut PgConnection,
    account: AccountId,
    flow: &Record,
) -> Result<bool, Error> {
    let stored = sqlx::query(
        "insert into automation.flow
            (account_id, id, name, description, category, trigger_type, trigger_key, active, step_count, version,
             ready_made, next_start_at, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
         on conflict (account_id, id) do update set
            name = $3, description = $4, category = $5, trigger_type = $6, trigger_key = $7, active = $8,
            step_count = $9, version = $10, next_start_at = $12, updated_at = $14",
    )
    .bind(account)
    .bind(flow.id)
    .bind(&flow.name)
    .bind(&flow.description)
    .bind(&flow.category)
    .bind(&flow.trigger_type)
    .bind(&flow.trigger_key)
    .bind(flow.active)
    .bind(flow.step_count)
    .bind(flow.version)
    .bind(&flow.ready_made)
    .bind(flow.next_start_at)
    .bind(flow.created_at)
    .bind(flow.updated_at)
    .execute(connection)
    .await;
    match stored {
        Ok(_) => Ok(true),
        Err(error) if chassis_base::error::database::violated_constraint(&error) == Some("flow_name") => {
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

/// Marks a flow as deleted; its versions stay for its runs. Tells whether there was one.
pub(crate) async fn delete(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let deleted = sqlx::query(
        "update automation.flow set deleted = true, active = false, next_start_at = null, updated_at = $3
         where account_id = $1 and id = $2 and not deleted",
    )
    .bind(account)
    .bind(id)
    .bind(now)
    .execute(connection)
    .await?;
    Ok(deleted.rows_affected() > 0)
}

/// The ready-made flows that the account has or had.
pub(crate) async fn list_ready_made(
    connection: &mut PgConnection,
    account: AccountId,
) -> Result<Vec<String>, Error> {
    let sql = "select ready_made from automation.flow where account_id = $1 and ready_made <> ''";
    Ok(sqlx::query_scalar(sql).bind(account).fetch_all(connection).await?)
}

pub(crate) async fn insert_version(
    connection: &mut PgConnection,
    account: AccountId,
    (flow, version): (Uuid, i64),
    content: &Version,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "insert into automation.flow_version (account_id, flow_id, version, source, definition, created_at, scopes)
         values ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(account)
    .bind(flow)
    .bind(version)
    .bind(&content.source)
    .bind(&content.definition)
    .bind(now)
    .bind(&content.scopes)
    .execute(connection)
    .await?;
    Ok(())
}

/// What a version is made of.
#[derive(FromRow)]
pub(crate) struct Version {
    /// As its author wrote it.
    pub source: String,
    /// As JSON.
    pub definition: String,
    /// What it may do.
    pub scopes: Vec<String>,
}

pub(crate) async fn find_version(
    connection: &mut PgConnection,
    account: AccountId,
    flow: Uuid,
    version: i64,
) -> Result<Option<Version>, Error> {
    let sql = "select source, definition, scopes from automation.flow_version
               where account_id = $1 and flow_id = $2 and version = $3";
    Ok(sqlx::query_as(sql).bind(account).bind(flow).bind(version).fetch_optional(connection).await?)
}
