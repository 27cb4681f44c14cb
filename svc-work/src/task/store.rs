//! The SQL of tasks.

use chassis_base::AccountId;
use chassis_base::paging::Page;
use chassis_base::stored::decode;
use chassis_data::list::{Fields, List, Selection, Total};
use chassis_data::row::Columns;
use chrono::{DateTime, NaiveDate, Utc};
use proto::api::PageMeta;
use proto::work::{TaskCategory, TaskStatus};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{FromRow, PgConnection, Postgres};
use uuid::Uuid;

use super::{
    CATEGORY_COLUMN, Deadline, DeadlineBound, DeadlineRange, LIST, Record, Related, STATUS, Values,
    category_from_name, category_name, status_name,
};
use crate::error::Error;

type Statement<'q> = Query<'q, Postgres, PgArguments>;

macro_rules! columns {
    ($notes:literal) => {
        concat!(
            "id, version, title, category, ",
            $notes,
            ", deadline_on, deadline_at, duration_minutes, client_id, project_id, deal_id, completed_at, created_at, \
             updated_at"
        )
    };
}

/// The columns of a list. Notes are left out, because they can be long.
const LISTED: &str = columns!("'' as notes");

/// Reads the columns in the order of `columns!`.
impl FromRow<'_, PgRow> for Record {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        Ok(Self {
            id: columns.take()?,
            version: columns.take()?,
            values: Values {
                title: columns.take()?,
                category: decode("task.category", columns.take()?, category_from_name)?,
                notes: columns.take()?,
                deadline: DeadlineColumns { on: columns.take()?, at: columns.take()? }.into(),
                duration: columns.take()?,
            },
            related: Related { client: columns.take()?, project: columns.take()?, deal: columns.take()? },
            completed_at: columns.take()?,
            created_at: columns.take()?,
            updated_at: columns.take()?,
        })
    }
}

/// The two columns of a deadline, of which at most one is set.
struct DeadlineColumns {
    on: Option<NaiveDate>,
    at: Option<DateTime<Utc>>,
}

impl From<DeadlineColumns> for Option<Deadline> {
    fn from(columns: DeadlineColumns) -> Self {
        columns.on.map(Deadline::Day).or(columns.at.map(Deadline::Moment))
    }
}

impl From<Option<Deadline>> for DeadlineColumns {
    fn from(deadline: Option<Deadline>) -> Self {
        match deadline {
            Some(Deadline::Day(day)) => Self { on: Some(day), at: None },
            Some(Deadline::Moment(moment)) => Self { on: None, at: Some(moment) },
            None => Self { on: None, at: None },
        }
    }
}

/// Which tasks a list shows. `None` and empty texts restrict nothing.
pub(super) struct Filter<'a> {
    pub selection: Selection,
    pub status: Option<TaskStatus>,
    pub category: Option<TaskCategory>,
    pub related: Related,
    pub deadline: DeadlineRange,
    pub search: &'a str,
}

/// A page, newest first unless `filter` has another order, without notes.
pub(super) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    filter: &Filter<'_>,
    page: Page,
) -> Result<(Vec<Record>, PageMeta), Error> {
    let mut list = List::new(account, "work.task", LISTED, Total::Counted(LIST));
    if let Some(status) = filter.status {
        list.only_counted_where(STATUS, status_name(status), status_condition(status));
    }
    list.only_counted(CATEGORY_COLUMN, filter.category.map(category_name));
    let related = filter.related;
    for (column, id) in
        [("client_id", related.client), ("project_id", related.project), ("deal_id", related.deal)]
    {
        list.only(column, id);
    }
    list.search_any_case("title", filter.search);
    within(&mut list, &filter.deadline);
    list.select(&filter.selection, &Fields::TIMES)?;
    Ok(list.fetch(connection, page).await?)
}

fn status_condition(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Open | TaskStatus::Unspecified => "completed_at is null",
        TaskStatus::Completed => "completed_at is not null",
    }
}

/// Narrows a list to the tasks whose deadline is in the range. A deadline is in one of two columns.
fn within(list: &mut List<'_>, range: &DeadlineRange) {
    if range.from.is_none() && range.to.is_none() {
        return;
    }
    list.matching(|values| {
        let (mut days, mut moments) = (Vec::new(), Vec::new());
        for (operator, bound) in [(">=", range.from), ("<=", range.to)] {
            if let Some(DeadlineBound { day, moment }) = bound {
                days.push(format!("deadline_on {operator} {}", values.bind(day)));
                moments.push(format!("deadline_at {operator} {}", values.bind(moment)));
            }
        }
        format!("{} or {}", days.join(" and "), moments.join(" and "))
    });
}

pub(super) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql = concat!("select ", columns!("notes"), " from work.task where account_id = $1 and id = $2");
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// Finds a task and locks it: another transaction that wants to change it waits until this one ends.
pub(super) async fn find_locked(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql =
        concat!("select ", columns!("notes"), " from work.task where account_id = $1 and id = $2 for update");
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

pub(super) fn insert(account: AccountId, record: &Record) -> Statement<'_> {
    let values = &record.values;
    let related = record.related;
    let deadline = DeadlineColumns::from(values.deadline);
    sqlx::query(
        "insert into work.task (account_id, id, title, category, notes, deadline_on, deadline_at, duration_minutes, \
         client_id, project_id, deal_id, completed_at, created_at, updated_at, version) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, null, $12, $12, $13)",
    )
    .bind(account)
    .bind(record.id)
    .bind(&values.title)
    .bind(category_name(values.category))
    .bind(&values.notes)
    .bind(deadline.on)
    .bind(deadline.at)
    .bind(values.duration)
    .bind(related.client)
    .bind(related.project)
    .bind(related.deal)
    .bind(record.created_at)
    .bind(record.version)
}

/// Stores the values of a changed task. Fails if its row does not have the version before.
pub(super) fn update(account: AccountId, record: &Record) -> Statement<'_> {
    let values = &record.values;
    let deadline = DeadlineColumns::from(values.deadline);
    sqlx::query(
        "update work.task set title = $3, category = $4, notes = $5, deadline_on = $6, deadline_at = $7, \
         duration_minutes = $8, completed_at = $9, updated_at = $10, \
         version = case when version = $11::bigint - 1 then $11 end where account_id = $1 and id = $2",
    )
    .bind(account)
    .bind(record.id)
    .bind(&values.title)
    .bind(category_name(values.category))
    .bind(&values.notes)
    .bind(deadline.on)
    .bind(deadline.at)
    .bind(values.duration)
    .bind(record.completed_at)
    .bind(record.updated_at)
    .bind(record.version)
}

/// Removes the references of tasks to these deals. Returns the changed tasks.
pub(super) async fn clear_deals(
    connection: &mut PgConnection,
    account: AccountId,
    deals: &[Uuid],
    now: DateTime<Utc>,
) -> Result<Vec<Record>, Error> {
    let sql = concat!(
        "update work.task set deal_id = null, version = version + 1, updated_at = $3 \
         where account_id = $1 and deal_id = any($2) returning ",
        columns!("notes")
    );
    Ok(sqlx::query_as(sql).bind(account).bind(deals).bind(now).fetch_all(connection).await?)
}

/// Removes a task and returns it.
pub(super) async fn delete(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql =
        concat!("delete from work.task where account_id = $1 and id = $2 returning ", columns!("notes"));
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}
