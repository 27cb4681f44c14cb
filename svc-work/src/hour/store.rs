//! The SQL of hours, and nothing else.

use chassis::AccountId;
use chassis::list::{List, Total};
use chassis::paging::Page;
use chassis::row::Columns;
use chrono::{DateTime, NaiveDate, Utc};
use proto::api::PageMeta;
use proto::work::HourStatus;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use super::{Record, Values, status_name, status_named};
use crate::Error;

macro_rules! columns {
    () => {
        "id, project_id, date, hours, minutes, activity_name, status, reason, created_at, updated_at"
    };
}

/// In the order of `columns!`.
impl FromRow<'_, PgRow> for Record {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        Ok(Self {
            id: columns.take()?,
            project: columns.take()?,
            values: Values {
                date: columns.take()?,
                hours: columns.take()?,
                minutes: columns.take()?,
                activity_name: columns.take()?,
            },
            status: status_named(columns.take()?),
            reason: columns.take()?,
            created_at: columns.take()?,
            updated_at: columns.take()?,
        })
    }
}

/// Which hours of a project are asked for.
pub struct Wanted {
    pub project: Uuid,
    pub from: Option<NaiveDate>,
    pub to: Option<NaiveDate>,
    pub status: Option<HourStatus>,
}

/// A page, newest first.
pub async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    wanted: &Wanted,
    page: Page,
) -> Result<(Vec<Record>, PageMeta), Error> {
    let mut list = List::new(account, "work.hour", columns!(), Total::Matching);
    list.equals("project_id", wanted.project);
    list.between("date", wanted.from, wanted.to);
    list.only("status", wanted.status.map(status_name));
    Ok(list.fetch(connection, page).await?)
}

/// Finds entries that are about to be changed, in the order of their ids; others who want to change them wait.
pub async fn find_locked(
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

pub async fn insert(connection: &mut PgConnection, account: AccountId, record: &Record) -> Result<(), Error> {
    let values = &record.values;
    sqlx::query(
        "insert into work.hour (account_id, id, project_id, date, hours, minutes, activity_name, status, reason, \
         created_at, updated_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)",
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
    .execute(connection)
    .await?;
    Ok(())
}

pub async fn update(connection: &mut PgConnection, account: AccountId, record: &Record) -> Result<(), Error> {
    let values = &record.values;
    sqlx::query(
        "update work.hour set date = $3, hours = $4, minutes = $5, activity_name = $6, status = $7, reason = $8, \
         updated_at = $9 where account_id = $1 and id = $2",
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
    .execute(connection)
    .await?;
    Ok(())
}

/// Gives entries a status.
pub async fn set_status(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
    (status, reason): (HourStatus, &str),
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "update work.hour set status = $3, reason = $4, updated_at = $5 where account_id = $1 and id = any($2)",
    )
    .bind(account)
    .bind(ids)
    .bind(status_name(status))
    .bind(reason)
    .bind(now)
    .execute(connection)
    .await?;
    Ok(())
}

pub async fn delete(connection: &mut PgConnection, account: AccountId, id: Uuid) -> Result<(), Error> {
    let sql = "delete from work.hour where account_id = $1 and id = $2";
    sqlx::query(sql).bind(account).bind(id).execute(connection).await?;
    Ok(())
}
