//! The SQL of flows. Their versions are in `definition::store`.

use chassis_base::AccountId;
use chassis_base::paging::Page;
use chassis_base::stored;
use chassis_data::list::{Fields, List, Selection, Total};
use chassis_data::row::Columns;
use chrono::{DateTime, Utc};
use proto::api::PageMeta;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use super::Record;
use crate::definition::TriggerType;
use crate::error::Error;

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
            trigger_type: stored::decode(
                "flow.trigger_type",
                &columns.take::<String>()?,
                TriggerType::from_name,
            )?,
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

/// Which flows a list shows.
pub(super) struct Filter {
    pub selection: Selection,
    pub trigger_type: Option<TriggerType>,
    pub active: Option<bool>,
    pub trigger_key: Option<String>,
    pub category: Option<String>,
}

/// A page, newest first unless `filter` has another order.
pub(super) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    filter: &Filter,
    page: Page,
) -> Result<(Vec<Record>, PageMeta), Error> {
    let mut list = List::new(account, "automation.flow", columns!(), Total::Matching);
    list.only("deleted", Some(false));
    if let Some(trigger_type) = filter.trigger_type {
        list.equals("trigger_type", trigger_type.name());
    }
    if let Some(active) = filter.active {
        list.only("active", Some(active));
    }
    list.only("trigger_key", filter.trigger_key.as_deref()).only("category", filter.category.as_deref());
    list.select(&filter.selection, &Fields::TIMES)?;
    Ok(list.fetch(connection, page).await?)
}

pub(super) async fn find(
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

/// Finds a flow and locks its row: changes of it happen one after the other.
pub(super) async fn find_locked(
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

/// Finds a flow by its name and locks its row.
pub(super) async fn find_by_name_locked(
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

/// Scheduled flows whose time has come, locked so that a change of the schedule at the same time is not overwritten.
pub(super) async fn find_scheduled_locked(
    connection: &mut PgConnection,
    account: AccountId,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<Record>, Error> {
    let sql = concat!(
        "select ",
        columns!(),
        " from automation.flow where account_id = $1 and next_start_at <= $2 and active and not deleted
          order by next_start_at, id limit $3 for update"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(now).bind(limit).fetch_all(connection).await?)
}

/// Stores a flow, new or changed; `false` when another flow has the name.
pub(super) async fn put(
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
    .bind(flow.trigger_type.name())
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

/// Marks a flow as deleted; its versions stay for its runs. `false` when there is none.
pub(super) async fn delete(
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

/// The ready-made flows that the account has or had, deleted ones included.
pub(super) async fn list_ready_made(
    connection: &mut PgConnection,
    account: AccountId,
) -> Result<Vec<String>, Error> {
    let sql = "select ready_made from automation.flow where account_id = $1 and ready_made <> ''";
    Ok(sqlx::query_scalar(sql).bind(account).fetch_all(connection).await?)
}

/// The accounts of this name or id, at most two: more than one means that the name is not enough.
pub(super) async fn find_accounts(
    connection: &mut PgConnection,
    name_or_id: &str,
) -> Result<Vec<Uuid>, Error> {
    let sql = "select account_id from automation.account where name = $1 or account_id::text = $1 limit 2";
    Ok(sqlx::query_scalar(sql).bind(name_or_id).fetch_all(connection).await?)
}
