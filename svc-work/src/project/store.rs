//! The SQL of projects.

use chassis_base::AccountId;
use chassis_base::paging::Page;
use chassis_base::stored::decode;
use chassis_data::list::{Fields, List, Selection, Total};
use chassis_data::row::Columns;
use chrono::{DateTime, Utc};
use proto::api::PageMeta;
use proto::work::ProjectStatus;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{FromRow, PgConnection, Postgres};
use uuid::Uuid;

use super::{LIST, Record, STATUS_COLUMN, Values, rules, status_from_name, status_name};
use crate::error::Error;

macro_rules! columns {
    () => {
        "id, version, number, name, status, client_id, budget, start_date, end_date, quote_id, created_at, updated_at"
    };
}

/// Reads the columns in the order of `columns!`.
impl FromRow<'_, PgRow> for Record {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let mut columns = Columns::of(row);
        Ok(Self {
            id: columns.take()?,
            version: columns.take()?,
            number: columns.take()?,
            values: Values {
                name: columns.take()?,
                status: decode("project.status", columns.take()?, status_from_name)?,
                client: columns.take()?,
                budget: columns.take()?,
                start: columns.take()?,
                end: columns.take()?,
            },
            quote: columns.take()?,
            created_at: columns.take()?,
            updated_at: columns.take()?,
        })
    }
}

/// Which projects a list shows. `None` and empty texts restrict nothing.
pub(super) struct Filter<'a> {
    pub selection: Selection,
    pub status: Option<ProjectStatus>,
    pub client: Option<Uuid>,
    pub quote: Option<Uuid>,
    /// A part of the name or number.
    pub search: &'a str,
}

/// A page, newest first unless `filter` has another order.
pub(super) async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    filter: &Filter<'_>,
    page: Page,
) -> Result<(Vec<Record>, PageMeta), Error> {
    let mut list = List::new(account, "work.project", columns!(), Total::Counted(LIST));
    list.only_counted(STATUS_COLUMN, filter.status.map(status_name));
    list.only("client_id", filter.client).only("quote_id", filter.quote);
    list.search("search_text", filter.search);
    list.select(&filter.selection, &Fields::TIMES)?;
    Ok(list.fetch(connection, page).await?)
}

pub(super) async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql = concat!("select ", columns!(), " from work.project where account_id = $1 and id = $2");
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// Finds a project and locks it: another transaction that wants to change it waits until this one ends.
pub(super) async fn find_locked(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<Option<Record>, Error> {
    let sql =
        concat!("select ", columns!(), " from work.project where account_id = $1 and id = $2 for update");
    Ok(sqlx::query_as(sql).bind(account).bind(id).fetch_optional(connection).await?)
}

/// The project that was created from a quote.
pub(super) async fn find_by_quote(
    connection: &mut PgConnection,
    account: AccountId,
    quote: Uuid,
) -> Result<Option<Record>, Error> {
    let sql = concat!("select ", columns!(), " from work.project where account_id = $1 and quote_id = $2");
    Ok(sqlx::query_as(sql).bind(account).bind(quote).fetch_optional(connection).await?)
}

pub(crate) async fn exists(
    connection: &mut PgConnection,
    account: AccountId,
    id: Uuid,
) -> Result<bool, Error> {
    let sql = "select exists (select from work.project where account_id = $1 and id = $2)";
    Ok(sqlx::query_scalar(sql).bind(account).bind(id).fetch_one(connection).await?)
}

/// Stores a new project. `false` when the quote already has a project.
pub(super) async fn insert(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
) -> Result<bool, Error> {
    let sql = "insert into work.project (account_id, id, name, status, client_id, budget, start_date, end_date, \
               search_text, updated_at, version, number, quote_id, created_at) \
               values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $10) \
               on conflict (account_id, quote_id) where quote_id is not null do nothing";
    let inserted = bind(sqlx::query(sql), account, record, record.created_at)
        .bind(record.version)
        .bind(&record.number)
        .bind(record.quote)
        .execute(connection)
        .await?;
    Ok(inserted.rows_affected() > 0)
}

pub(super) async fn update(
    connection: &mut PgConnection,
    account: AccountId,
    record: &Record,
) -> Result<(), Error> {
    let sql = "update work.project set name = $3, status = $4, client_id = $5, budget = $6, start_date = $7, \
               end_date = $8, search_text = $9, updated_at = $10, version = $11 where account_id = $1 and id = $2";
    bind(sqlx::query(sql), account, record, record.updated_at)
        .bind(record.version)
        .execute(connection)
        .await?;
    Ok(())
}

/// Removes the references of projects to these quotes. Returns the changed projects.
pub(super) async fn clear_quotes(
    connection: &mut PgConnection,
    account: AccountId,
    quotes: &[Uuid],
    now: DateTime<Utc>,
) -> Result<Vec<Record>, Error> {
    let sql = concat!(
        "update work.project set quote_id = null, version = version + 1, updated_at = $3 \
         where account_id = $1 and quote_id = any($2) returning ",
        columns!()
    );
    Ok(sqlx::query_as(sql).bind(account).bind(quotes).bind(now).fetch_all(connection).await?)
}

/// Binds the parameters that insert and update have in common: $1 to $10.
fn bind<'q>(
    query: Query<'q, Postgres, PgArguments>,
    account: AccountId,
    record: &'q Record,
    now: DateTime<Utc>,
) -> Query<'q, Postgres, PgArguments> {
    let values = &record.values;
    query
        .bind(account)
        .bind(record.id)
        .bind(&values.name)
        .bind(status_name(values.status))
        .bind(values.client)
        .bind(values.budget)
        .bind(values.start)
        .bind(values.end)
        .bind(rules::search_text(&values.name, &record.number))
        .bind(now)
}
