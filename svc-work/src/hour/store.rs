//! The SQL of hours.

use chassis_base::AccountId;
use chassis_base::paging::Page;
use chassis_base::stored::decode;
use chassis_data::list::{Fields, List, Selection, Total};
use chassis_data::row::Columns;
use chrono::{DateTime, NaiveDate, Utc};
use proto::api::PageMeta;
use proto::work::HourStatus;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use super::{Record, Values, status_from_name, status_name};
use crate::error::Error;

macro_rules! columns {
    () => {
        "id, version, project_id, date, hours, minutes, activity_name, status, reason, created_at, updated_at"
    };
}

/// Reads the columns in the order of `columns!`.
impl FromRow<'_, PgRow> for Record {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        Ok(Self {
            id: columns.take()?,
            version: columns.take()?,
            project: columns.take()?,
            values: Values {
                date: columns.take()?,
                hours: columns.take()?,
                minutes: columns.take()?,
                activity_name: columns.take()?,
            },
            status: decode("hour.status", columns.take()?, status_from_name)?,
            reason: columns.take()?,
            created_at: columns.take()?,
            updated_at: columns.take()?,
        })
    }
}

/// Which hours of a project a list has. `None` does not restrict it.
pub(super) struct Filter {
    pub selection: Selection,
    pub project: Uuid,
    /// A day must be in both.
    pub days: [Days; 2],
    pub status: Option<HourStatus>,
}

/// Days from one to another, both included; `None` is open.
pub(super) struct Days {
    pub from: Option<NaiveDate>,
    pub to: Option<NaiveDate>,
}

/// A page, newest first unless `filter` has another order.
pub(super) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    filter: &Filter,
    page: Page,
) -> Result<(Vec<Record>, PageMeta), Error> {
    let mut list = List::new(account, "work.hour", columns!(), Total::Matching);
    list.equals("project_id", filter.project);
    for Days { from, to } in &filter.days {
        list.between("date", *from, *to);
    }
    list.only("status", filter.status.map(status_name));
    list.select(&filter.selection, &Fields::TIMES)?;
    Ok(list.fetch(connection, page).await?)
}

pub(super) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql = concat!("select ", columns!(), " from work.hour where account_id = $1 and id = $2");
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// Finds entries and locks them in the order of their ids: another transaction that wants to change one waits until this
/// one ends.
pub(super) async fn list_locked(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
) -> Result<Vec<Record>, Error> {
    let sql = concat!(
        "select ",
        columns!(),
        " from work.hour where account_id = $1 and id = any($2) order by id for update"
    );
    Ok(sqlx::query_as(sql).bind(account).bind(ids).fetch_all(connection).await?)
}

pub(super) async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
) -> Result<(), Error> {
    let values = &record.values;
    sqlx::query(
        "insert into work.hour (account_id, id, project_id, date, hours, minutes, activity_name, status, reason, \
         created_at, updated_at, version) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $11)",
    )
    .bind(account)
    .bind(record.id)
    .bind(record.project)
    .bind(values.date)
    .bind(values.hours)
    .bind(values.minutes)
    .bind(&values.activity_name)
    .bind(status_name(record.status))
    .bind(&record.reason)
    .bind(record.created_at)
    .bind(record.version)
    .execute(connection)
    .await?;
    Ok(())
}

pub(super) async fn update(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
) -> Result<(), Error> {
    let values = &record.values;
    sqlx::query(
        "update work.hour set date = $3, hours = $4, minutes = $5, activity_name = $6, status = $7, reason = $8, \
         updated_at = $9, version = $10 where account_id = $1 and id = $2",
    )
    .bind(account)
    .bind(record.id)
    .bind(values.date)
    .bind(values.hours)
    .bind(values.minutes)
    .bind(&values.activity_name)
    .bind(status_name(record.status))
    .bind(&record.reason)
    .bind(record.updated_at)
    .bind(record.version)
    .execute(connection)
    .await?;
    Ok(())
}

/// A status, and the reason of a rejection.
#[derive(Clone, Copy, Debug)]
pub(super) struct StatusChange<'a> {
    pub status: HourStatus,
    pub reason: &'a str,
}

/// Gives entries a status.
pub(super) async fn set_status(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
    change: StatusChange<'_>,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "update work.hour set status = $3, reason = $4, updated_at = $5, version = version + 1 \
         where account_id = $1 and id = any($2)",
    )
    .bind(account)
    .bind(ids)
    .bind(status_name(change.status))
    .bind(change.reason)
    .bind(now)
    .execute(connection)
    .await?;
    Ok(())
}

pub(super) async fn delete(connection: &mut PgConnection, account: AccountId, id: Uuid) -> Result<(), Error> {
    let sql = "delete from work.hour where account_id = $1 and id = $2";
    sqlx::query(sql).bind(account).bind(id).execute(connection).await?;
    Ok(())
}
